import CachectlCore
import Larder
import NIOCore

/// What `serve` and `objects` print when they are ready.
struct Announcement {
    private let json: ReadyJSON
    private let budget: String
    private let stored: String

    /// Where a server listens.
    struct Addresses {
        var plain: SocketAddress?
        var tls: SocketAddress?
        /// URL.
        var grpc: String?
        var admin: SocketAddress?
        /// For people to read.
        var origins: [String] = []
    }

    init(_ addresses: Addresses, _ statistics: Statistics, _ path: String, hasDefaultBudget: Bool) {
        let limit = statistics.budget.bytes
        json = ReadyJSON(
            address: addresses.plain.map { "http://\($0.text)" }, tls: addresses.tls.map { "https://\($0.text)" },
            grpc: addresses.grpc, admin: addresses.admin.map { "http://\($0.text)" }, store: path,
            entryCount: statistics.entryCount,
            allocatedBytes: statistics.allocatedBytes.bytes, budgetBytes: limit == .unlimited ? nil : limit.bytes,
            origins: addresses.origins)
        stored = "\(Render.count(statistics.entryCount, "entry", "entries")), \(statistics.allocatedBytes)"
        budget =
            if limit == .unlimited {
                "no budget: the store may fill the disk"
            } else if hasDefaultBudget {
                "budget \(limit), 80 % of the free disk space (--budget changes it)"
            } else {
                "budget \(limit)"
            }
    }

    /// Prints one line of JSON, or one line for each address, for the store and for each origin.
    func write(asJSON: Bool) throws {
        if asJSON { return try Output.write(JSON.line(json)) }
        var text = ""
        for address in [json.address, json.tls, json.grpc].compactMap(\.self) { text += "listening on \(address)\n" }
        if let admin = json.admin { text += "admin on \(admin)\n" }
        text += "store \(json.store): \(stored), \(budget)\n"
        for origin in json.origins { text += "origin for \(origin)\n" }
        try Output.write(text)
    }
}

extension SocketAddress {
    /// The address as in a URL: `127.0.0.1:8080`, `[::1]:8080`.
    var text: String {
        let host = ipAddress ?? "localhost"
        return (host.contains(":") ? "[\(host)]" : host) + ":\(port ?? 0)"
    }
}

/// `serve --json`.
private struct ReadyJSON: Encodable {
    @Nullable var address: String?
    @Nullable var tls: String?
    let grpc: String?
    @Nullable var admin: String?
    let store: String
    let entryCount: Int
    let allocatedBytes: Int64
    @Nullable var budgetBytes: Int64?
    let origins: [String]
}
