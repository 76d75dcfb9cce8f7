/// Which run of the machine this is: unsynced data of an earlier run may be lost.
enum BootIdentity {
    /// Linux: `/proc/sys/kernel/random/boot_id` (proc(5)). Darwin: the sysctl(3) variable `kern.bootsessionuuid`;
    /// `kern.boottime` moves when the clock is set. 0 where neither can be read: then nothing tells a crash of a
    /// process from one of the machine, and the worse is assumed.
    static var current: UInt64 {
        #if canImport(Darwin)
            var bytes = [UInt8](repeating: 0, count: 64)
            var size = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &size, nil, 0) == 0 else { return 0 }
            let digits = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self).filter { $0 != "-" }
            guard digits.utf8.count == 32, let first = UInt64(digits.prefix(16), radix: 16),
                let second = UInt64(digits.suffix(16), radix: 16)
            else { return 0 }
            return first ^ second
        #else
            let file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
            guard file >= 0 else { return 0 }
            defer { close(file) }
            var bytes = [UInt8](repeating: 0, count: 36)
            guard read(file, &bytes, 36) == 36 else { return 0 }
            let digits = String(decoding: bytes, as: UTF8.self).filter { $0 != "-" }
            return UInt64(digits.prefix(16), radix: 16) ?? 0
        #endif
    }
}
