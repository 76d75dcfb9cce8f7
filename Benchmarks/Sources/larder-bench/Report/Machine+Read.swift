import CRawLMDB
import Foundation
import GRDB
import SystemPackage

extension Machine {
    /// Reads the properties of this machine and of the file system that `path` is on.
    static func read(_ path: FilePath, notes: [String]) -> Machine {
        var name = utsname()
        uname(&name)
        var load = [0.0, 0.0, 0.0]
        getloadavg(&load, 3)
        return Machine(
            processor: processor(), cores: ProcessInfo.processInfo.activeProcessorCount,
            memoryGiB: Double(ProcessInfo.processInfo.physicalMemory) / Double(1 << 30),
            kernel: "\(text(of: &name.sysname)) \(text(of: &name.release)) \(text(of: &name.machine))",
            fileSystem: fileSystem(path), load: load[0],
            notes: notes + ["LMDB=\(version(of: mdb_version(nil, nil, nil)))", "SQLite=\(sqlite)"])
    }

    private static func version(of text: UnsafeMutablePointer<CChar>?) -> String {
        // "LMDB 0.9.24: (July 24, 2019)"
        let words = text.map { String(cString: $0) }?.split(whereSeparator: { $0 == " " || $0 == ":" }) ?? []
        return words.count > 1 ? String(words[1]) : "unknown"
    }

    private static var sqlite: String {
        (try? DatabaseQueue().read { try String.fetchOne($0, sql: "SELECT sqlite_version()") }) ?? "unknown"
    }

    private static func text<Tuple>(of field: inout Tuple) -> String {
        withUnsafeBytes(of: &field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private static func processor() -> String {
        let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
        return model.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown"
    }

    /// Type and options of the mount with the longest path that `path` starts with. proc(5), /proc/self/mounts.
    private static func fileSystem(_ path: FilePath) -> String {
        let real = URL(fileURLWithPath: path.string).resolvingSymlinksInPath().path
        let mounts = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8))?.split(separator: "\n") ?? []
        var best = (length: -1, text: "unknown")
        for mount in mounts {
            let fields = mount.split(separator: " ")
            guard fields.count > 3 else { continue }
            let point = String(fields[1])
            let isIn = point == "/" || real == point || real.hasPrefix(point + "/")
            if isIn, point.count >= best.length { best = (point.count, "\(fields[2]) (\(fields[3]))") }
        }
        return best.text
    }
}
