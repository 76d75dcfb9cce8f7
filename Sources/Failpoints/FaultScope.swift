#if LARDER_FAILPOINTS
    import Locks

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #elseif canImport(Darwin)
        import Darwin
    #endif

    /// Faults for the files under one directory, for as long as the object exists: tests that run in
    /// one process at the same time do not affect each other.
    public final class FaultScope: Sendable {
        /// The rules and what they have counted, shared with the hooks.
        final class State: Sendable {
            private struct Counted {
                var rules: [FaultRule]
                /// Hits since the rules were set.
                var hits: [String: Int] = [:]
                var injected = 0
                var actions: [String: @Sendable () -> Void] = [:]
                /// Threads that wait at a rule.
                var stalled = 0
                /// How often the rules were removed or replaced.
                var generation = 0
            }

            private let prefixes: [String]?
            private let counted: EngineMutex<Counted>

            init(under prefix: String?, rules: [FaultRule]) {
                prefixes = prefix.map { Array(Set([$0, Self.resolved($0)])) }
                counted = EngineMutex(Counted(rules: rules))
            }

            func covers(_ place: String) -> Bool {
                guard let prefixes else { return true }
                return prefixes.contains { prefix in
                    place.hasPrefix(prefix)
                        && (place.utf8.count == prefix.utf8.count || place.hasPrefix(prefix + "/"))
                }
            }

            /// The path without symbolic links, as a descriptor's is: `/var` is one on macOS. realpath(3).
            private static func resolved(_ path: String) -> String {
                guard let real = realpath(path, nil) else { return path }
                defer { free(real) }
                return String(cString: real)
            }

            func hit(_ name: String) -> FaultRule.Action? {
                counted.withLock { counted in
                    let number = counted.hits[name, default: 0] + 1
                    counted.hits[name] = number
                    guard let rule = counted.rules.first(where: { $0.name == name && $0.applies(to: number) }) else {
                        return nil
                    }
                    counted.injected += 1
                    return rule.action
                }
            }

            func action(_ name: String) -> (@Sendable () -> Void)? { counted.withLock { $0.actions[name] } }

            func set(_ rules: [FaultRule]) {
                counted.withLock { counted in
                    let (stalled, generation) = (counted.stalled, counted.generation)
                    counted = Counted(rules: rules)
                    counted.stalled = stalled
                    counted.generation = generation + 1
                }
            }

            func set(_ action: (@Sendable () -> Void)?, at name: String) {
                counted.withLock { $0.actions[name] = action }
            }

            func lift() {
                counted.withLock { counted in
                    counted.rules = []
                    counted.actions = [:]
                    counted.generation += 1
                }
            }

            /// Holds the calling thread until the rules change.
            func stall() {
                let generation = counted.withLock { counted in
                    counted.stalled += 1
                    return counted.generation
                }
                while counted.withLock({ $0.generation == generation }) { usleep(500) }
                counted.withLock { $0.stalled -= 1 }
            }

            var stalled: Int { counted.withLock { $0.stalled } }
            var hits: [String: Int] { counted.withLock { $0.hits } }
            var injected: Int { counted.withLock { $0.injected } }
        }

        private let state: State

        /// Begins with `rules` (default: none, hits are only counted) for all files under the directory `path`, an
        /// absolute path. Below a symbolic link it has to exist already.
        public init(under path: String, _ rules: [FaultRule] = []) {
            state = State(under: path, rules: rules)
            Failpoints.add(state)
        }

        deinit {
            Failpoints.remove(state)
            state.lift()
        }

        /// Starts over with other rules: sets every count to zero, and removes all actions.
        public func set(_ rules: [FaultRule]) { state.set(rules) }

        /// Runs `action` at each hit of the call or step `name`, on the thread that hits it and before the call is
        /// made. Use it to inspect the store at that moment, to change something, or to hold the thread there.
        public func at(_ name: String, _ action: @escaping @Sendable () -> Void) { state.set(action, at: name) }

        /// Removes all rules and actions; hits are still counted.
        public func lift() { state.lift() }

        /// Number of times each call and step was reached since the rules were set.
        public var hits: [String: Int] { state.hits }

        /// Waits until a thread is held by a rule `stall`.
        public func waitUntilStalled() {
            while state.stalled == 0 { usleep(500) }
        }

        /// Number of times a rule applied since the rules were set.
        public var injected: Int { state.injected }
    }
#endif
