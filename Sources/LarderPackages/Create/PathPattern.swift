/// A pattern for paths: `*` stands for any text, slashes too, `?` for one character, `[abc]` and `[a-c]` for one of
/// these, `[!abc]` for any other. Everything else stands for itself. `tools/afcpkg.py` has the same function, because
/// fnmatch(3) differs with the system and the locale.
struct PathPattern {
    private enum Part: Equatable {
        case text
        case any
        case one(Unicode.Scalar)
        case either([ClosedRange<Unicode.Scalar>], isNegated: Bool)
    }

    private let parts: [Part]

    init(_ pattern: String) {
        let letters = Array(pattern.unicodeScalars)
        var parts: [Part] = []
        var place = 0
        while place < letters.count {
            let letter = letters[place]
            place += 1
            switch letter {
            case "*": parts.append(.text)
            case "?": parts.append(.any)
            case "[":
                guard let (part, end) = Self.set(letters, from: place) else {
                    parts.append(.one(letter))
                    continue
                }
                parts.append(part)
                place = end
            default: parts.append(.one(letter))
            }
        }
        self.parts = parts
    }

    /// What is between brackets, and the place behind them; nil without a closing bracket. The first letter is never
    /// that bracket.
    private static func set(_ letters: [Unicode.Scalar], from start: Int) -> (Part, Int)? {
        var place = start
        let isNegated = place < letters.count && letters[place] == "!"
        if isNegated { place += 1 }
        guard let end = letters.indices.first(where: { $0 > place && letters[$0] == "]" }) else { return nil }
        var ranges: [ClosedRange<Unicode.Scalar>] = []
        while place < end {
            let first = letters[place]
            if place + 2 < end, letters[place + 1] == "-" {
                let last = letters[place + 2]
                if first <= last { ranges.append(first...last) }
                place += 3
            } else {
                ranges.append(first...first)
                place += 1
            }
        }
        return (.either(ranges, isNegated: isNegated), end + 1)
    }

    /// Whether the whole of a path matches.
    func matches(_ path: String) -> Bool {
        let letters = Array(path.unicodeScalars)
        var (part, letter) = (0, 0)
        // Where the last `*` may take one letter more.
        var again: (part: Int, letter: Int)?
        while letter < letters.count {
            if part < parts.count, parts[part] == .text {
                again = (part + 1, letter)
                part += 1
            } else if part < parts.count, Self.matches(parts[part], letters[letter]) {
                part += 1
                letter += 1
            } else if let last = again {
                again = (last.part, last.letter + 1)
                (part, letter) = (last.part, last.letter + 1)
            } else {
                return false
            }
        }
        return parts[part...].allSatisfy { $0 == .text }
    }

    private static func matches(_ part: Part, _ letter: Unicode.Scalar) -> Bool {
        switch part {
        case .text: false
        case .any: true
        case .one(let wanted): wanted == letter
        case .either(let ranges, let isNegated): ranges.contains { $0.contains(letter) } != isNegated
        }
    }
}
