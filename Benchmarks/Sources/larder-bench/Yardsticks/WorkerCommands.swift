import ArgumentParser
import Foundation
import Larder
import SystemPackage

/// `put-and-die`: opens a store, commits one entry and is killed, as by a power switch for the process.
struct PutAndDieCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put-and-die", abstract: "Put one entry and end by SIGKILL.", shouldDisplay: false)

    @Option var store: String
    @Option var entry: Int

    func run() throws {
        let store = try Store(at: FilePath(store))
        try store.put([UInt8](repeating: 1, count: OpenYardstick.bodyLength), for: Key(bytes: Name.bytes(entry)))
        try store.flush()
        kill(getpid(), SIGKILL)
    }
}

/// `set-worker`: one of the processes of `SetYardstick`.
struct SetWorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set-worker", abstract: "Get, put and remove in a store that others use, too.",
        shouldDisplay: false)

    @Option var store: String
    @Option var seed: UInt64

    func run() throws {
        let store = try Store(at: FilePath(store))
        var generator = Generator(seed: seed)
        let keys = (0..<SetYardstick.keys).map { Key(bytes: Name.bytes($0)) }
        var sets: [UInt64] = []
        for _ in 0..<SetYardstick.operations {
            let key = keys[Int(generator.next() % UInt64(SetYardstick.keys))]
            switch generator.next() % 100 {
            case ..<90: _ = try store.get(key)
            case ..<99:
                let body = withUnsafeBytes(of: generator.next()) { Array($0) }
                let start = Ticks.now()
                try store.put(body, for: key)
                sets.append(Ticks.now() - start)
            default: try store.remove(key)
            }
        }
        try store.close()
        print(try JSONOutput.text(SetYardstick.Sets(sets)))
    }
}
