import CachectlCore
import Larder
import SystemPackage

/// Runs the same operations on a store and on plain files.
struct Bench {
    /// The result of one operation at one body size.
    struct Result {
        let operation: String
        let bodySize: Int
        let count: Int
        /// Operations per second of the store.
        let storeRate: Double
        /// Operations per second of plain files.
        let fileRate: Double
        /// The store's rate divided by that of plain files.
        var ratio: Double { storeRate / fileRate }
    }

    /// The body sizes: a small record, a typical inline body, a body in its own file.
    static let sizes = [1 << 10, 16 << 10, 1 << 20]

    private let store: Store
    private let directory: FilePath
    private let clock = ContinuousClock()

    init(_ store: Store, files: FilePath) {
        self.store = store
        directory = files
    }

    /// Puts, reads, looks up and removes bodies of one size, `volume` in all.
    func run(bodySize: Int, volume: ByteCount) throws -> [Result] {
        let count = max(16, min(20_000, Int(volume.bytes) / bodySize))
        var random = RandomBytes(seed: .random(in: 1 ... .max))
        let bodies = (0..<count).map { _ in random.bytes(bodySize) }
        let keys = (0..<count).map { Key("bench:///\(getpid())/\(bodySize)/\($0)") }
        let files = PlainFiles(directory, count: count)
        try files.prepare()
        defer { for key in keys { _ = try? store.remove(key) } }

        func measure(
            _ operation: String, store inStore: (Int) throws -> Void, files inFiles: (Int) throws -> Void,
            end: () throws -> Void = {}
        ) throws -> Result {
            func rate(_ body: (Int) throws -> Void, _ end: () throws -> Void) throws -> Double {
                let elapsed = try clock.measure {
                    for index in 0..<count {
                        if index & 63 == 0 { try Interruption.check() }
                        try body(index)
                    }
                    try end()
                }
                return Double(count) / max(elapsed.inSeconds, 1e-9)
            }
            return Result(
                operation: operation, bodySize: bodySize, count: count, storeRate: try rate(inStore, end),
                fileRate: try rate(inFiles, {}))
        }

        let put = try measure(
            "put", store: { try store.put(bodies[$0], for: keys[$0]) }, files: { try files.write(bodies[$0], $0) },
            end: { try store.flush() })
        let get = try measure(
            "get",
            store: { index in
                guard let entry = try store.get(keys[index]), try entry.body.bytes().count == bodySize else {
                    throw CommandError(
                        .data, "the budget of the store is too small for the bodies: omit --store")
                }
            }, files: { _ = try files.read($0, bodySize) })
        let contains = try measure(
            "contains", store: { _ = try store.contains(keys[$0]) }, files: { _ = files.exists($0) })
        let remove = try measure(
            "remove", store: { try store.remove(keys[$0]) }, files: { files.remove($0) }, end: { try store.flush() })
        return [put, get, contains, remove]
    }
}
