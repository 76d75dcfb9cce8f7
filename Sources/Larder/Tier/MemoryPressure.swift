import CLarder
import Locks

#if canImport(Darwin)
    import Dispatch
#endif

/// Tells memory tiers when the system, or the cgroup that this process is in, is short of memory.
///
/// Linux: triggers of pressure stall information, of the system and of the cgroup (`accounting/psi.rst` and
/// `admin-guide/cgroup-v2.rst` of the kernel). A thread waits for them from the moment on when a tier of the process
/// first holds something. The counters of a cgroup's `memory.events` do not tell of a shortage: page cache that reaches
/// the limit of the cgroup, and is given back without a stall, counts there, too. Apple's systems: a dispatch source
/// for memory pressure.
final class MemoryPressure: @unchecked Sendable, ProcessGlobal {
    // SAFETY: `shared` is written only in a child of fork(2), by its only thread; the rest is touched under `monitor`.
    nonisolated(unsafe) private(set) static var shared = MemoryPressure()

    static func prepare() { _ = shared }

    static func rehearse() {
        var other = MemoryPressure()
        replace(&other, with: MemoryPressure()).release()
    }

    static func beginAgain() {
        // Its thread stayed behind. The files are of no use to a child, which opens its own.
        for file in shared.sources { close(file) }
        replace(&shared, with: MemoryPressure())
    }

    private struct WeakTier {
        weak var tier: MemoryTier?
    }

    private let monitor = Monitor()
    private var tiers: [WeakTier] = []
    private var sources: [Int32] = []
    private var isStarted = false
    #if canImport(Darwin)
        private var source: (any DispatchSourceMemoryPressure)?
    #endif

    /// Tells a tier from now on. Without a way to hear of pressure, the tier keeps what its limit allows.
    func watch(_ tier: MemoryTier) {
        monitor.locked {
            tiers.removeAll { $0.tier == nil }
            tiers.append(WeakTier(tier: tier))
            if !isStarted { start() }
            isStarted = true
        }
    }

    private func tell() {
        for tier in monitor.locked({ tiers.compactMap(\.tier) }) { tier.shrink() }
    }

    #if canImport(Darwin)
        private func start() {
            let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical])
            source.setEventHandler { [self] in tell() }
            source.activate()
            self.source = source
        }
    #else
        private func start() {
            let files = PressureFiles.opened()
            sources = files.map(\.descriptor)
            if files.isEmpty { return }
            // A tier that is not told keeps what its limit allows.
            _ = try? WorkerThread { [self] in
                var files = files
                while !files.isEmpty {
                    var isShort = false
                    FirstRounds.between { isShort = PressureFiles.wait(&files) }
                    if isShort { tell() }
                }
            }
        }
    #endif
}

#if !canImport(Darwin)
    /// A file of pressure stall information with a trigger.
    private struct PressureFile: Sendable {
        let descriptor: Int32
        /// Microseconds for which some task has stalled.
        var total: UInt64
    }

    private enum PressureFiles {
        /// Some task stalls for a tenth of the time, in a window of two seconds: the shortest that a process without
        /// privileges may ask for.
        private static let trigger = "some 200000 2000000\0"
        /// Less than the trigger asks for: the kernel rounds.
        private static let leastStall: UInt64 = 150_000

        /// For the system, and for the cgroup.
        static func opened() -> [PressureFile] {
            (["/proc/pressure"] + (group().map { [$0] } ?? [])).compactMap { directory in
                let isSystem = directory.hasPrefix("/proc/")
                let path = directory + (isSystem ? "/memory" : "/memory.pressure")
                let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
                if descriptor >= 0, write(descriptor, trigger, trigger.utf8.count) >= 0, let total = total(descriptor) {
                    return PressureFile(descriptor: descriptor, total: total)
                }
                if descriptor >= 0 { close(descriptor) }
                return nil
            }
        }

        /// Waits for a trigger; returns whether tasks have stalled since the one before. A file that has none any more,
        /// as its cgroup is gone, is left out from then on. poll(2).
        ///
        /// The first one may tell of stalls before it was set: the kernel keeps the count of an earlier trigger.
        static func wait(_ files: inout [PressureFile]) -> Bool {
            var polled = files.map { pollfd(fd: $0.descriptor, events: Int16(POLLPRI), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), -1) > 0 else { return false }
            var isShort = false
            files = zip(files, polled).compactMap { file, polled in
                if polled.revents == 0 { return file }
                guard polled.revents & Int16(POLLERR) == 0, let total = total(file.descriptor) else { return nil }
                if total &- file.total >= leastStall { isShort = true }
                return PressureFile(descriptor: file.descriptor, total: total)
            }
            return isShort
        }

        /// Of the first line of the file, which is that of `some`.
        private static func total(_ descriptor: Int32) -> UInt64? {
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = pread(descriptor, &bytes, bytes.count, 0)
            let line = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).prefix { $0 != "\n" }
            return line.split(separator: "=").last.flatMap { UInt64($0) }
        }

        /// The directory of this process's cgroup (version 2), as far as it is seen from here. cgroups(7).
        private static func group() -> String? {
            guard let path = lines("/proc/self/cgroup").first(where: { $0.hasPrefix("0::") })?.dropFirst(3),
                let mount = lines("/proc/self/mounts").map({ $0.split(separator: " ") })
                    .first(where: { $0.count > 2 && $0[2] == "cgroup2" })
            else { return nil }
            return String(mount[1]) + (path == "/" ? "" : path)
        }

        private static func lines(_ path: String) -> [Substring] {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return [] }
            defer { close(descriptor) }
            var text: [UInt8] = []
            var piece = [UInt8](repeating: 0, count: 4096)
            while text.count < 1 << 20 {
                let count = read(descriptor, &piece, piece.count)
                if count <= 0 { break }
                text += piece.prefix(count)
            }
            return String(decoding: text, as: UTF8.self).split(separator: "\n")
        }
    }
#endif
