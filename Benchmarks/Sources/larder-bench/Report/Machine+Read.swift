import Foundation
import SystemPackage

extension Machine {
    /// Looks at this machine and the file system that `path` is on.
    static func read(_ path: FilePath, notes: [String]) -> Machine {
        var name = utsname()
        uname(&name)
        var load = [0.0, 0.0, 0.0]
        getloadavg(&load, 3)
        return Machine(
            processor: processor(), cores: ProcessInfo.processInfo.activeProcessorCount,
            memoryGiB: Double(ProcessInfo.processInfo.physicalMemory) / Double(1 << 30),
            kernel: "\(text(of: &name.sysname)) \(text(of: &name.release)) \(text(of: &name.machine))",
            fileSystem: fileSystem(path), load: load[0], notes: notes)
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
