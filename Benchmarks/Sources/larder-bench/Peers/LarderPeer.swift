import Larder
import SystemPackage

/// Larder with its defaults.
final class LarderPeer: Peer {
    /// For workloads that ask the engine itself.
    let store: Store
    private let reading: Reading
    private static let durable = PutOptions(durability: .durable)

    /// How the caller gets the bytes of a hit.
    enum Reading {
        /// `get` and `bytes()`: newly allocated memory.
        case own
        /// `read(_:into:)`: a copy in the caller's buffer, as pread(2) makes it.
        case copied
        /// `withBody(of:)`: in place. Only the first and the last byte are read.
        case inPlace
    }

    init(_ path: FilePath, _ options: PeerOptions = PeerOptions(), reading: Reading = .own) throws {
        store = try Store(at: path, Self.configuration(options))
        self.reading = reading
    }

    /// Another way to read from a store that is open.
    init(sharing store: Store, reading: Reading) {
        self.store = store
        self.reading = reading
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
        switch reading {
        case .own: return try store.get(name.key)?.body.bytes().count
        case .copied: return try store.read(name.key, into: scratch.buffer)
        case .inPlace: return try store.withBody(of: name.key) { span in span.withUnsafeBytes { scratch.look(at: $0) } }
        }
    }

    func remove(_ name: Name) throws { try store.remove(name.key) }

    func settle() throws { try store.flush() }

    func close() throws { try store.close() }
}
