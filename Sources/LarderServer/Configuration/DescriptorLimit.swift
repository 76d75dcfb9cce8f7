#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// How many files and sockets this process may have open.
public enum DescriptorLimit {
    /// The least that a server can work with.
    static let least = 128

    /// Raises the soft limit of open files to the hard one; `Gateway.start(_:cache:)` does so. Where it cannot be
    /// raised it stays as it is. Source: getrlimit(2), `RLIMIT_NOFILE`.
    ///
    /// - Returns: how many files the process may have open from now on.
    @discardableResult
    public static func raise() -> Int {
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return fallback }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = highest(limit.rlim_max)
            if setrlimit(resource, &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Client connections that a limit has room for. The rest, half of it or 4,096 at most, is for connections to
    /// origins, for files of the store, and for what every process has open.
    static func connections(within limit: Int) -> Int { max(1, limit - min(limit / 2, 4_096)) }

    /// POSIX promises 20; every system that this runs on has more.
    private static let fallback = 256

    #if canImport(Darwin)
        private static let resource = RLIMIT_NOFILE
        // setrlimit(2) of macOS: "EINVAL ... use RLIMIT_NOFILE with rlim_cur = min(OPEN_MAX, rlim_max)".
        private static func highest(_ hard: rlim_t) -> rlim_t { min(rlim_t(OPEN_MAX), hard) }
    #elseif canImport(Musl)
        private static let resource = RLIMIT_NOFILE
        private static func highest(_ hard: rlim_t) -> rlim_t { hard }
    #else
        private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        private static func highest(_ hard: rlim_t) -> rlim_t { hard }
    #endif
}
