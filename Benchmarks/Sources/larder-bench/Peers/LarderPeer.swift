import Larder
import SystemPackage

/// Larder with its defaults.
final class LarderPeer: Peer {
    /// For workloads that ask the engine itself.
    let store: Store
    private let lends: Bool
    private static let durable = PutOptions(durability: .durable)

    /// - Parameter lends: reads through `withBody(of:)` and copies into the caller's buffer, as pread(2) does.
    init(_ path: FilePath, _ options: PeerOptions = PeerOptions(), lends: Bool = false) throws {
        store = try Store(at: path, Self.configuration(options))
        self.lends = lends
    }

    /// Another way to read from a store that is open.
    init(sharing store: Store, lends: Bool) {
        self.store = store
        self.lends = lends
    }

    /// The defaults, and a budget if there is one.
    static func configuration(_ options: PeerOptions) -> Configuration {
        var configuration = Configuration()
        if let bytes = options.budgetBytes { configuration.budget = Budget(bytes: ByteCount(bytes)) }
        return configuration
    }

    func name(_ index: Int) -> Name {
        var name = Name(index)
        name.key = Key(bytes: Name.bytes(index))
        return name
    }

    func put(_ body: [UInt8], _ name: Name) throws { try store.put(body, for: name.key) }

    func putDurable(_ body: [UInt8], _ name: Name) throws { try store.put(body, for: name.key, Self.durable) }

    func get(_ name: Name, _ scratch: Scratch) throws -> Int? {
        if lends {
            return try store.withBody(of: name.key) { span in span.withUnsafeBytes { scratch.take($0) } }
        }
        return try store.get(name.key)?.body.bytes().count
    }

    func remove(_ name: Name) throws { try store.remove(name.key) }

    func settle() throws { try store.flush() }

    func close() throws { try store.close() }
}
