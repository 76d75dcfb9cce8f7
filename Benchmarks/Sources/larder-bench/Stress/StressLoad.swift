import Larder
import Synchronization

/// What the threads of the stress test share: which version of each key's body is stored, and what went wrong.
///
/// Each key belongs to one writing thread, so that its next version is known without a lock across the put; any thread
/// reads it. A reader may see the version that was the latest before it looked, or a later one, or nothing:
/// displacement may take anything.
final class StressLoad: Sendable {
    /// Latest version whose put has returned, by key; and the version whose put has begun.
    let finished: [Cell]
    let begun: [Cell]
    let bodies: Bodies
    let gets = Atomic<Int>(0)
    let hits = Atomic<Int>(0)
    let puts = Atomic<Int>(0)
    let removals = Atomic<Int>(0)
    let comparedBytes = Atomic<Int>(0)
    private let failures = Mutex<[String]>([])

    /// A version that threads share.
    final class Cell: Sendable { let value = Atomic<Int>(0) }

    init(keys: Int, bodies: Bodies) {
        finished = (0..<keys).map { _ in Cell() }
        begun = (0..<keys).map { _ in Cell() }
        self.bodies = bodies
    }

    /// Records what went wrong; keeps the text of the first hundred.
    func fail(_ text: String) { failures.withLock { if $0.count < 100 { $0.append(text) } } }

    /// What went wrong so far.
    var failed: [String] { failures.withLock { $0 } }

    /// Which version the bytes are of; nil if they are not a body of `key`. Every byte is compared.
    func version(of bytes: [UInt8], key: Int) -> Int? {
        guard bytes.count >= 16 else { return nil }
        let stamp = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self) }
        let version = Int(stamp >> 32)
        guard version <= begun[key].value.load(ordering: .acquiring), bytes == bodies.body(key, version: version) else {
            return nil
        }
        comparedBytes.wrappingAdd(bytes.count, ordering: .relaxed)
        return version
    }

    /// One get, its bytes compared: wrong bytes, another key's bytes, and a version older than the one that was there
    /// before the lookup are violations.
    func get(_ store: Store, _ key: Int, lends: Bool) throws {
        let least = finished[key].value.load(ordering: .acquiring)
        let name = Key(bytes: Name.bytes(key))
        let found: [UInt8]?
        if lends {
            found = try store.withBody(of: name) { span in span.withUnsafeBytes { Array($0) } }
        } else {
            found = try store.get(name)?.body.bytes()
        }
        gets.wrappingAdd(1, ordering: .relaxed)
        guard let found else { return }
        hits.wrappingAdd(1, ordering: .relaxed)
        guard let version = version(of: found, key: key) else {
            return fail("\(name): \(found.count) bytes that were never put under this key")
        }
        if version < least {
            fail("\(name): version \(version) was read after the put of version \(least) had returned")
        }
    }

    /// One put of the key's next version, by the thread that owns the key.
    func put(_ store: Store, _ key: Int, durable: Bool) throws {
        let version = begun[key].value.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        let body = bodies.body(key, version: version)
        try store.put(
            body, for: Key(bytes: Name.bytes(key)), PutOptions(durability: durable ? .durable : .relaxed))
        finished[key].value.store(version, ordering: .releasing)
        puts.wrappingAdd(1, ordering: .relaxed)
    }

    /// One removal, by the thread that owns the key. It takes a version number that no body has: the previous body must
    /// not be read once the removal has returned.
    func remove(_ store: Store, _ key: Int) throws {
        let version = begun[key].value.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        try store.remove(Key(bytes: Name.bytes(key)))
        finished[key].value.store(version, ordering: .releasing)
        removals.wrappingAdd(1, ordering: .relaxed)
    }
}
