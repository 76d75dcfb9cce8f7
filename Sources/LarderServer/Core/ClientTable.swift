import NIOCore
import Locks

/// Whom limits for a client count for: an IPv4 address, or a network of IPv6, as a single customer gets 2^64 addresses
/// of those.
struct ClientAddress: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    /// Nil for what has no IP address.
    init?(_ address: SocketAddress?) {
        switch address {
        case .v4(let address):
            (high, low) = (0, UInt64(UInt32(bigEndian: address.address.sin_addr.s_addr)))
        case .v6(let address):
            let words = withUnsafeBytes(of: address.address.sin6_addr) { bytes in
                (
                    UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                    UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
                )
            }
            // RFC 4291 section 2.5.5.2: IPv4 addresses written as IPv6.
            let isMapped = words.0 == 0 && words.1 >> 32 == 0xFFFF
            (high, low) = isMapped ? (0, words.1 & 0xFFFF_FFFF) : (words.0, UInt64.max)
        default: return nil
        }
    }
}

/// How many connections and requests to origins each client has. Safe to use from any thread; nothing here is touched
/// for an answer from the store.
final class ClientTable: Sendable {
    private struct Entry {
        var connections = 0
        var loads = 0
    }

    private let connections: Int
    private let loads: Int
    private let entries = Mutex<[ClientAddress: Entry]>([:])
    private let refusals = Atomic<Int>(0)

    init(_ limits: GatewayLimits) {
        connections = limits.connectionsPerClient
        loads = limits.requestsPerClient
    }

    /// Requests that were refused.
    var refusedRequests: Int { refusals.load(ordering: .relaxed) }

    /// Clients that have something open.
    var count: Int { entries.withLock { $0.count } }

    /// Connections that count.
    func connections(of client: ClientAddress) -> Int { entries.withLock { $0[client]?.connections ?? 0 } }

    /// Requests that count.
    func requests(of client: ClientAddress) -> Int { entries.withLock { $0[client]?.loads ?? 0 } }

    /// Counts a connection; false, having counted nothing, for one too many.
    func admit(_ client: ClientAddress) -> Bool {
        entries.withLock { entries in
            guard entries[client, default: Entry()].connections < connections else { return false }
            entries[client, default: Entry()].connections += 1
            return true
        }
    }

    /// A connection has ended.
    func left(_ client: ClientAddress) { change(client) { $0.connections -= 1 } }

    /// A place among the requests that a client has at origins; nil when it has all it may.
    /// - Parameter isRefused: whether a request without one is refused, and counted.
    func place(for client: ClientAddress, isRefused: Bool = true) -> Place? {
        let isFree = entries.withLock { entries in
            guard entries[client, default: Entry()].loads < loads else { return false }
            entries[client, default: Entry()].loads += 1
            return true
        }
        if !isFree, isRefused { refusals.add(1, ordering: .relaxed) }
        return isFree ? Place(self, client) : nil
    }

    private func change(_ client: ClientAddress, _ body: (inout Entry) -> Void) {
        entries.withLock { entries in
            guard var entry = entries[client] else { return }
            body(&entry)
            entries[client] = entry.connections > 0 || entry.loads > 0 ? entry : nil
        }
    }

    /// A request that counts, until the last reference to it is dropped.
    final class Place: Sendable {
        private let counted: (table: ClientTable, client: ClientAddress)?

        /// A place that no limit counts.
        init() { counted = nil }

        fileprivate init(_ table: ClientTable, _ client: ClientAddress) { counted = (table, client) }

        deinit { if let (table, client) = counted { table.change(client) { $0.loads -= 1 } } }
    }
}

extension SocketAddress {
    /// 127.0.0.0/8, ::1, and the former written as IPv6.
    var isLoopback: Bool {
        guard let text = ipAddress else { return false }
        return text == "::1" || text.hasPrefix("127.") || text.hasPrefix("::ffff:127.")
    }
}
