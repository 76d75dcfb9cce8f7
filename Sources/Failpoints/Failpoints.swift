#if LARDER_FAILPOINTS
    import Locks

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #elseif canImport(Darwin)
        import Darwin
    #endif

    /// The faults of this process: those of the environment variable `LARDER_FAILPOINTS`, for all stores, and those of
    /// the `FaultScope`s that exist.
    public enum Failpoints {
        /// The environment variable with the rules of a process.
        public static let variable = "LARDER_FAILPOINTS"

        private static let scopes = EngineMutex<[FaultScope.State]>(environment())
        private static let scopeCount = Atomic<Int>(0)
        private static let hasEnvironment = scopes.withLock { !$0.isEmpty }

        /// True if there is any rule or scope. If it is false, calls test nothing else.
        public static var isActive: Bool { scopeCount.load(ordering: .relaxed) > 0 || hasEnvironment }

        private static func environment() -> [FaultScope.State] {
            guard let raw = getenv(variable), raw.pointee != 0 else { return [] }
            let text = String(cString: raw)
            guard let rules = FaultRule.list(text) else {
                let message = Array("\(variable): cannot read '\(text)'\n".utf8)
                _ = message.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
                exit(64)
            }
            return [FaultScope.State(under: nil, rules: rules)]
        }

        static func add(_ scope: FaultScope.State) {
            scopes.withLock { $0.append(scope) }
            scopeCount.wrappingAdd(1, ordering: .sequentiallyConsistent)
        }

        static func remove(_ scope: FaultScope.State) {
            scopes.withLock { $0.removeAll { $0 === scope } }
            scopeCount.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        }

        /// A step was reached.
        public static func reach(_ name: StaticString, at place: String) { _ = fault(name, at: place) }

        /// The effect on a call.
        public static func fault(_ name: StaticString, at place: String) -> InjectedFault? {
            let name = "\(name)"
            var result: InjectedFault?
            for scope in scopes.withLock({ $0 }) where scope.covers(place) {
                let decision = scope.hit(name)
                scope.action(name)?()
                switch decision {
                case nil: break
                case .fault(let fault): result = fault
                case .stall: scope.stall()
                case .kill:
                    kill(getpid(), SIGKILL)
                    while true { pause() }
                }
            }
            return result
        }

        /// The path of an open file; empty if the system does not give one.
        public static func path(of descriptor: Int32) -> String {
            let kept = errno
            defer { errno = kept }
            #if canImport(Darwin)
                var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
                guard fcntl(descriptor, F_GETPATH, &buffer) == 0 else { return "" }
                return String(cString: buffer)
            #else
                var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
                let count = buffer.withUnsafeMutableBytes { raw in
                    readlink(
                        "/proc/self/fd/\(descriptor)", raw.baseAddress!.assumingMemoryBound(to: CChar.self), raw.count)
                }
                return count < 0 ? "" : String(decoding: buffer[..<count], as: UTF8.self)
            #endif
        }
    }
#endif
