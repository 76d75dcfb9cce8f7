import CEffort
import Foundation
import Larder
import SystemPackage

/// From some moment on the disk refuses LMDB's meta pages (the first two of `data.mdb`), and nothing else.
///
/// Prints `C <step> <code>` for each step after that; the store is left as it is then.
func runHalted(_ path: FilePath) throws {
    var configuration = Configuration()
    configuration.inlineThreshold = .kibibytes(1)
    configuration.logger.logLevel = .critical
    let store = try Store(at: path, configuration)
    for (number, name) in ["replaced", "removed", "read"].enumerated() {
        let body = makeBody(name: UInt64(number), seed: 1, length: 20_000)
        try store.put(body, for: Key(name), PutOptions(durability: .durable))
    }
    for descriptor in descriptors(of: path.string + "/index/data.mdb") {
        guard effort_refuse_writes(descriptor, 8192) else { return say("UNSUPPORTED") }
    }
    tell("replace") {
        try store.put(makeBody(name: 9, seed: 2, length: 20_000), for: "replaced", PutOptions(durability: .durable))
    }
    tell("remove") {
        try store.remove("removed")
        try store.flush()
    }
    tell("get") { _ = try store.get("read")?.body.bytes() }
    tell("put") { try store.put([1], for: "new", PutOptions(durability: .durable)) }
    tell("close") { try store.close() }
    tell("get again") { _ = try store.get("read") }
}

private func tell(_ step: String, _ body: () throws -> Void) {
    do {
        try body()
        say("C \(step): nothing")
    } catch let error as LarderError {
        say("C \(step): \(error.code)")
    } catch {
        say("C \(step): \(error)")
    }
}

private func descriptors(of file: String) -> [Int32] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.compactMap(Int32.init).filter {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == file
    }
}
