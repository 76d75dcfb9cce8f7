#if LARDER_FAILPOINTS
    /// A rule that sets the effect of certain hits of a call or step.
    ///
    /// Written as `NAME=ACTION`, `NAME=ACTION@N` or `NAME=ACTION@N+`: at every hit, at the N-th (from 1), from the N-th
    /// on. ACTION is `kill` (SIGKILL), `stall` (the thread waits), `short` (part of the bytes), a name of `FaultCode`,
    /// or a number.
    public struct FaultRule: Sendable, Hashable, CustomStringConvertible {
        /// The effect of a rule.
        public enum Action: Sendable, Hashable {
            /// The process ends by SIGKILL.
            case kill
            /// The thread waits here until the rules are removed or replaced.
            case stall
            /// The call has this effect instead.
            case fault(InjectedFault)
        }

        /// The call or step.
        public let name: String
        /// The effect at a hit.
        public let action: Action
        /// The first hit with the effect, counted from 1.
        public let first: Int
        /// True: all later hits also have the effect.
        public let isLasting: Bool
        /// The rule as written in the environment.
        public let description: String

        /// Parses one rule; nil if `text` is not a rule.
        public init?(_ text: String) {
            let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard sides.count == 2, !sides[0].isEmpty else { return nil }
            var words = sides[1].split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
            name = String(sides[0])
            description = text
            if words.count == 2 {
                isLasting = words[1].hasSuffix("+")
                if isLasting { words[1].removeLast() }
                guard let number = Int(words[1]), number > 0 else { return nil }
                first = number
            } else {
                first = 1
                isLasting = true
            }
            switch words[0] {
            case "kill": action = .kill
            case "stall": action = .stall
            case "short": action = .fault(.short)
            default:
                guard let code = FaultCode.named(String(words[0])) else { return nil }
                action = .fault(.failure(code))
            }
        }

        /// Parses rules separated by semicolons; nil if one of them is invalid.
        public static func list(_ text: String) -> [FaultRule]? {
            var rules: [FaultRule] = []
            for part in text.split(separator: ";") {
                guard let rule = FaultRule(String(part)) else { return nil }
                rules.append(rule)
            }
            return rules
        }

        /// True if the rule applies to hit `number`, counted from 1.
        func applies(to number: Int) -> Bool { isLasting ? number >= first : number == first }
    }
#endif
