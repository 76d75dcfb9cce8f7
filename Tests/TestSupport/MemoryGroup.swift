import Foundation

/// A cgroup with a limit on its memory, of either version, below the one that this process is in. Linux only.
public struct MemoryGroup {
    private let directory: String

    /// Where a process that joins writes its number.
    public var processes: String { directory + "/cgroup.procs" }

    /// Whether this user may make one.
    public static let canMake: Bool = {
        guard let group = MemoryGroup(limit: 64 << 20) else { return false }
        group.remove()
        return true
    }()

    /// - Parameter limit: in bytes. Nil where there is no controller, or no right to use it.
    public init?(limit: Int) {
        guard let groups = try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8) else { return nil }
        for line in groups.split(separator: "\n") {
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            let isFirstVersion = fields[1].split(separator: ",").contains("memory")
            guard isFirstVersion || fields[1].isEmpty else { continue }
            let mount = "/sys/fs/cgroup" + (isFirstVersion ? "/memory" : "")
            let made = mount + fields[2] + "/larder-test-\(UUID().uuidString)"
            guard mkdir(made, 0o755) == 0 else { continue }
            let file = made + (isFirstVersion ? "/memory.limit_in_bytes" : "/memory.max")
            // Not atomically: the file is the kernel's.
            if (try? Data("\(limit)".utf8).write(to: URL(fileURLWithPath: file))) != nil {
                directory = made
                return
            }
            rmdir(made)
        }
        return nil
    }

    /// Call it when its processes have ended.
    public func remove() { rmdir(directory) }
}
