/// The members of a `Cache-Control` value (RFC 9111 section 5.2): `token [ "=" ( token / quoted-string ) ]`,
/// separated by commas.
enum DirectiveList {
    /// One directive as it was written.
    struct Directive {
        /// The name in lower case.
        var name: [UInt8]
        /// What follows the equals sign.
        var argument: Argument
    }

    enum Argument: Equatable {
        /// No equals sign.
        case none
        /// A token or the content of a quoted string: recipients ought to accept both for every directive.
        case value([UInt8])
        /// Anything else: white space around the equals sign, an empty or broken value.
        case malformed
    }

    /// Parses all lines of a field. Members without a token are left out; a name with a broken argument is kept as
    /// ``Argument/malformed``, so that `max-age= 5` makes a response stale and `no-store= ` still forbids storing.
    static func parse(_ bytes: [UInt8]) -> [Directive] {
        // One word, as most that are not stored say.
        if FieldBytes.isToken(bytes[...]) {
            return [Directive(name: FieldBytes.lowercased(bytes[...]), argument: .none)]
        }
        var directives: [Directive] = []
        for member in members(bytes) {
            let words = split(member, at: FieldBytes.isSpace)
            for word in words {
                if let directive = directive(word, isAlone: words.count == 1) { directives.append(directive) }
            }
        }
        return directives
    }

    /// - Parameter isAlone: false for one of several words in a member, of which none is written as defined. Then a
    ///   name still restricts, and a number still counts, but nothing permits.
    private static func directive(_ word: ArraySlice<UInt8>, isAlone: Bool) -> Directive? {
        // `"private, no-store"`: what comes before a name is passed over.
        let rest = word.drop { !FieldBytes.isToken($0) && $0 != FieldBytes.equals }
        let name = rest.prefix { FieldBytes.isToken($0) }
        guard !name.isEmpty else { return nil }
        var argument = argument(after: rest.dropFirst(name.count))
        if rest.count != word.count { argument = .malformed }
        if !isAlone {
            if case .value(let value) = argument, value.allSatisfy(FieldBytes.isDigit) {
            } else {
                argument = .malformed
            }
        }
        return Directive(name: FieldBytes.lowercased(name), argument: argument)
    }

    private static func argument(after rest: ArraySlice<UInt8>) -> Argument {
        guard let first = rest.first else { return .none }
        // `no-store:` or `max-age:5`: the leading token decides, the rest is broken.
        guard first == FieldBytes.equals else { return .malformed }
        let right = rest.dropFirst()
        if FieldBytes.isToken(right) { return .value(Array(right)) }
        return FieldBytes.unquoted(right).map { .value($0) } ?? .malformed
    }

    /// The members of the list. Semicolons separate as commas do, and so does white space, for the words of one member:
    /// `public; max-age=30` and `public max-age=30` occur, and what follows must not be lost. No such byte is part of a
    /// directive, outside of quotes.
    private static func members(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        split(bytes[...]) { $0 == FieldBytes.comma || $0 == FieldBytes.semicolon }
    }

    /// The pieces between separators outside of quotes, without empty ones. O(n): an opening quote ends the search of
    /// the one before.
    private static func split(
        _ bytes: ArraySlice<UInt8>, at isSeparator: (UInt8) -> Bool
    ) -> [ArraySlice<UInt8>] {
        var pieces: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        var index = start
        while index < bytes.endIndex {
            if isSeparator(bytes[index]) {
                if start < index { pieces.append(bytes[start..<index]) }
                start = index + 1
            } else if bytes[index] == FieldBytes.quote, index > start, bytes[index - 1] == FieldBytes.equals,
                let end = endOfQuoted(bytes, from: index)
            {
                index = end
            }
            index += 1
        }
        if start < bytes.endIndex { pieces.append(bytes[start...]) }
        return pieces
    }

    /// The position of the closing quote; nil if there is none, or if something other than a separator follows: then
    /// the quote hides nothing, as it is not known what it was to enclose.
    private static func endOfQuoted(_ bytes: ArraySlice<UInt8>, from start: Int) -> Int? {
        var index = start + 1
        while index < bytes.endIndex, bytes[index] != FieldBytes.quote {
            index += bytes[index] == FieldBytes.backslash ? 2 : 1
        }
        guard index < bytes.endIndex else { return nil }
        let next = index + 1
        let isClosing =
            next == bytes.endIndex || bytes[next] == FieldBytes.comma || bytes[next] == FieldBytes.semicolon
            || FieldBytes.isSpace(bytes[next])
        return isClosing ? index : nil
    }
}
