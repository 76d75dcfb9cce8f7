import HTTPWire
import LarderHTTP

/// What a request has begun without a task, and the place that it has among those of its client.
package struct BegunRequest: Sendable {
    package let load: BegunLoad
    /// Nil for one that was not admitted.
    let place: ClientTable.Place?

    /// Whether it may be kept waiting for memory: others may wait for a load that it leads.
    var mayWait: Bool { if case .followed = load { place == nil } else { false } }
}

/// A request that goes to an origin, or waits for another that did, without a task. On one event loop only.
package struct ServiceRelay: Sendable {
    let work: any RelayedWork
    /// What the client gets where no response comes.
    let failure: @Sendable (FetchError) -> ServiceAnswer

    package init(_ work: any RelayedWork, failure: @escaping @Sendable (FetchError) -> ServiceAnswer) {
        self.work = work
        self.failure = failure
    }
}

extension PlainRequest {
    /// The request as it goes to an origin (RFC 9110 section 7.6): with a host and a name for `Via` of the gateway's
    /// choice, without fields of the connection.
    package func forwarded(host: String, via: String?) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head.count + host.utf8.count + 128)
        bytes += "GET ".utf8
        bytes += target
        bytes += " HTTP/1.1\r\nHost: ".utf8
        bytes += host.utf8
        bytes += "\r\n".utf8
        for line in lines where !isOfConnection(line) {
            bytes += head[line.name]
            bytes += ": ".utf8
            bytes += head[line.value]
            bytes += "\r\n".utf8
        }
        if let via {
            bytes += "Via: 1.1 ".utf8
            bytes += via.utf8
            bytes += "\r\n".utf8
        }
        bytes += "\r\n".utf8
        return bytes
    }

    private func isOfConnection(_ line: FieldLine) -> Bool {
        guard line.kind == .other || line.kind == .expect else { return true }
        return switch line.name.count {
        case 2: head.spells("te", at: line.name)
        case 7: head.spells("upgrade", at: line.name) || head.spells("trailer", at: line.name)
        case 10: head.spells("keep-alive", at: line.name)
        case 16: head.spells("proxy-connection", at: line.name)
        case 18: head.spells("proxy-authenticate", at: line.name)
        case 19: head.spells("proxy-authorization", at: line.name)
        case 25: head.spells("proxy-authentication-info", at: line.name)
        default: false
        }
    }
}
