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

    /// Parses all lines of a field. Members whose name is not a token are left out; a name with a broken argument is
    /// kept as ``Argument/malformed``, so that `max-age= 5` makes a response stale and `no-store= ` still forbids
    /// storing.
    static func parse(_ bytes: [UInt8]) -> [Directive] {
        members(bytes).compactMap { member in
            guard let equals = member.firstIndex(of: FieldBytes.equals) else {
                // `no-store:` or `max-age:5`: the leading token decides, the rest is broken.
                let name = member.prefix { FieldBytes.isToken($0) }
                guard !name.isEmpty else { return nil }
                return Directive(
                    name: FieldBytes.lowercased(name), argument: name.count == member.count ? .none : .malformed)
            }
            let left = member[..<equals]
            let name = left.prefix { FieldBytes.isToken($0) }
            guard !name.isEmpty else { return nil }
            let right = member[(equals + 1)...]
            let argument: Argument
            if name.count != left.count {
                argument = .malformed
            } else if FieldBytes.isToken(right) {
                argument = .value(Array(right))
            } else if let text = FieldBytes.unquoted(right) {
                argument = .value(text)
            } else {
                argument = .malformed
            }
            return Directive(name: FieldBytes.lowercased(name), argument: argument)
        }
    }

    /// The members of a list in which semicolons and white space separate as commas do: `public; max-age=30` and
    /// `public max-age=30` occur, and what follows must not be lost. No such byte is part of a directive, outside of
    /// quotes. A quote that is never closed is an ordinary byte, for the same reason.
    private static func members(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var members: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        while index <= bytes.count {
            if index == bytes.count || isSeparator(bytes[index]) {
                if start < index { members.append(bytes[start..<index]) }
                start = index + 1
            } else if bytes[index] == FieldBytes.quote, let end = endOfQuoted(bytes, from: index) {
                index = end
            }
            index += 1
        }
        return members
    }

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte == FieldBytes.comma || byte == FieldBytes.semicolon || FieldBytes.isSpace(byte)
    }

    /// The position of the closing quote; nil if there is none.
    private static func endOfQuoted(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start + 1
        while index < bytes.count, bytes[index] != FieldBytes.quote {
            index += bytes[index] == FieldBytes.backslash ? 2 : 1
        }
        return index < bytes.count ? index : nil
    }
}
