import ArgumentParser
import Larder

/// `--where`: conditions joined by `and`, `or`, `not` and parentheses.
///
///     (tag=news or host=example.com) and not pinned and unused-for=30d
///
/// `not` binds closer than `and`, and `and` closer than `or`. A value ends at a space or a parenthesis unless it stands
/// in double quotes, in which a backslash makes the next character plain.
package struct SelectionExpression: Sendable, Hashable {
    private indirect enum Node: Sendable, Hashable {
        case selection(Selection)
        /// An age, by the time of the store.
        case age(Age, Duration)
        case not(Node)
        case and([Node])
        case or([Node])
    }

    private enum Age: String, Sendable {
        case olderThan = "older-than"
        case newerThan = "newer-than"
        case unusedFor = "unused-for"
    }

    private let root: Node

    /// - Throws: `ValidationError` that says what is wrong, and what there is.
    package static func parse(_ text: String) throws -> SelectionExpression {
        var parser = Parser(try Token.tokens(text))
        let root = try parser.alternatives()
        if let rest = parser.next { throw ValidationError("--where: '\(rest.text)' does not continue an expression.") }
        return SelectionExpression(root: root)
    }

    /// - Parameter now: the time of the store.
    package func selection(at now: Timestamp) -> Selection { Self.selection(root, now) }

    private static func selection(_ node: Node, _ now: Timestamp) -> Selection {
        switch node {
        case .selection(let selection): selection
        case .age(.olderThan, let age): .storedBefore(now - age)
        case .age(.newerThan, let age): .storedSince(now - age)
        case .age(.unusedFor, let age): .unusedSince(now - age)
        case .not(let node): !selection(node, now)
        case .and(let nodes):
            nodes.dropFirst().reduce(selection(nodes[0], now)) { $0 && selection($1, now) }
        case .or(let nodes):
            nodes.dropFirst().reduce(selection(nodes[0], now)) { $0 || selection($1, now) }
        }
    }

    // MARK: Words

    private struct Token {
        let text: String
        /// True for a parenthesis, and for a word without a value.
        let isPlain: Bool
        /// What stands before and after the first `=`.
        var name: String { text.prefix { $0 != "=" }.lowercased() }
        var value: String? {
            text.firstIndex(of: "=").map { String(text[text.index(after: $0)...]) }
        }

        static func tokens(_ text: String) throws -> [Token] {
            var tokens: [Token] = []
            var word: String?
            var isQuoted = false
            var isPlain = true
            func end() {
                if let word { tokens.append(Token(text: word, isPlain: isPlain)) }
                word = nil
                isPlain = true
            }
            var rest = text.unicodeScalars[...]
            while let scalar = rest.popFirst() {
                switch scalar {
                case "\\" where isQuoted:
                    guard let next = rest.popFirst() else { break }
                    word = (word ?? "") + String(next)
                case "\"":
                    isQuoted.toggle()
                    isPlain = false
                    word = word ?? ""
                case " " where !isQuoted, "\t" where !isQuoted, "\n" where !isQuoted: end()
                case "(" where !isQuoted, ")" where !isQuoted:
                    end()
                    tokens.append(Token(text: String(scalar), isPlain: true))
                default: word = (word ?? "") + String(scalar)
                }
            }
            if isQuoted { throw ValidationError("--where: a double quote is not closed.") }
            end()
            return tokens
        }
    }

    // MARK: Grammar

    /// The deepest nesting of parentheses. No real expression is deeper.
    private static let deepest = 100

    private struct Parser {
        private var tokens: ArraySlice<Token>
        private var depth = 0

        init(_ tokens: [Token]) { self.tokens = tokens[...] }

        var next: Token? { tokens.first }

        private mutating func take(_ word: String) -> Bool {
            guard let token = tokens.first, token.isPlain, token.text.lowercased() == word else { return false }
            tokens.removeFirst()
            return true
        }

        mutating func alternatives() throws -> Node {
            var nodes = [try conditions()]
            while take("or") { nodes.append(try conditions()) }
            return nodes.count == 1 ? nodes[0] : .or(nodes)
        }

        private mutating func conditions() throws -> Node {
            var nodes = [try condition()]
            while take("and") { nodes.append(try condition()) }
            return nodes.count == 1 ? nodes[0] : .and(nodes)
        }

        private mutating func condition() throws -> Node {
            depth += 1
            defer { depth -= 1 }
            if depth > SelectionExpression.deepest { throw ValidationError("--where: too many parentheses.") }
            if take("not") { return .not(try condition()) }
            if take("(") {
                let inner = try alternatives()
                guard take(")") else { throw ValidationError("--where: a parenthesis is not closed.") }
                return inner
            }
            guard let token = tokens.popFirst(), token.text != ")" || !token.isPlain else {
                throw ValidationError("--where: a condition is missing. \(Self.known)")
            }
            return try Self.node(token)
        }

        private static let known =
            "Conditions: key=, prefix=, host=, tag=, content=, policy=, version=, at-least=, older-than=, newer-than=, "
            + "unused-for=, pinned, expired, incomplete, all."

        private static func node(_ token: Token) throws -> Node {
            guard let value = token.value else {
                switch token.name {
                case "pinned": return .selection(.pinned)
                case "expired": return .selection(.expired)
                case "incomplete": return .selection(.incomplete)
                case "all": return .selection(.all)
                default: throw ValidationError("--where: there is no condition '\(token.text)'. \(known)")
                }
            }
            if value.isEmpty { throw ValidationError("--where: '\(token.name)' has no value.") }
            switch token.name {
            case "key": return .selection(.keys([Key(value)]))
            case "prefix": return .selection(.prefix(Key(value)))
            case "host": return .selection(.host(value))
            case "tag": return .selection(.tag(value))
            case "version": return .selection(.version(value))
            case "content": return .selection(.content(try DigestArgument.parse(value)))
            case "policy": return .selection(.policy(try PolicyArgument.parse(value)))
            case "at-least": return .selection(.atLeast(try SizeArgument.parse(value)))
            default:
                guard let age = Age(rawValue: token.name) else {
                    throw ValidationError("--where: there is no condition '\(token.name)='. \(known)")
                }
                return .age(age, try DurationArgument.parseWithUnit(value))
            }
        }
    }
}

/// A SHA-256 on the command line.
package enum DigestArgument {
    package static func parse(_ text: String) throws -> Digest {
        guard let digest = Digest(hexadecimal: text) else {
            throw ValidationError("'\(text)' is not a valid SHA-256. Use 64 hexadecimal digits.")
        }
        return digest
    }
}

/// A storage policy on the command line. Entries in memory are not in any other process.
package enum PolicyArgument {
    package static func parse(_ text: String) throws -> StoragePolicy {
        switch text.lowercased() {
        case "permanent": return .permanent
        case "session": return .session
        default: throw ValidationError("'\(text)' is not a storage policy. Use permanent or session.")
        }
    }
}
