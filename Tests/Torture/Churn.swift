import Foundation
import Larder
import SeededData
import SystemPackage

/// Bodies of 5 KB to 2 MB come and go: most of what is on disk is always new, and in many pieces.
enum Churn {
    /// Works until it has made the operations or is killed.
    ///
    /// - Parameter names: how many keys there are; their bodies have 340 KB on average.
    static func work(_ path: String, _ seed: UInt64, _ operations: Int, names: Int) throws {
        let store = try Store(at: FilePath(path), Workload.configuration(of: ProcessInfo.processInfo.environment))
        WorkerMain.say("READY")
        var generator = SeededGenerator(seed: seed)
        for number in 0..<operations {
            let key = Key("c/\(Int.random(in: 0..<names, using: &generator))")
            try WorkerMain.attempt {
                switch Int.random(in: 0..<20, using: &generator) {
                case 0..<7: try store.put(body(key, &generator), for: key)
                case 7: try store.put(body(key, &generator), for: key, PutOptions(durability: .durable))
                case 8..<13: try stream(store, key, &generator)
                case 13..<15: try store.remove(key)
                default:
                    if let entry = try store.get(key), let flaw = try Workload.flaw(of: entry, key) {
                        throw Failure(flaw)
                    }
                }
            }
            // Lets the checks and collections of other processes run, too.
            if number % 4 == 0 { usleep(2000) }
        }
        try store.close()
    }

    private static func body(_ key: Key, _ generator: inout SeededGenerator) -> [UInt8] {
        let length = Int(5000 * pow(400, Double.random(in: 0...1, using: &generator)))
        return Workload.body(key.description, seed: generator.next() % 4, length: length)
    }

    /// In pieces of a size, the last one shorter. Half of the bodies have more than 1 MiB: space for what comes after
    /// that is allocated ahead, so that a power loss can leave a file of the right length with a hole at its beginning.
    private static func stream(_ store: Store, _ key: Key, _ generator: inout SeededGenerator) throws {
        let bytes =
            generator.oneIn(2)
            ? body(key, &generator)
            : Workload.body(
                key.description, seed: generator.next() % 4,
                length: Int.random(in: 1_100_000...1_500_000, using: &generator))
        let writer = try store.writer(for: key)
        let piece = [4096, 16_000, 65_536, 200_000].randomElement(using: &generator) ?? 4096
        for start in stride(from: 0, to: bytes.count, by: piece) {
            try writer.write(Array(bytes[start..<min(start + piece, bytes.count)]))
        }
        try writer.commit()
    }
}
