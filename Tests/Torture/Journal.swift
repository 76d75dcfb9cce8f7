import Larder

/// What durable entries a store must have, by what its workers have said.
///
/// A worker says `B key digest` before a durable put and `D key digest` after it, `X key` and `Y key` before and after a
/// removal and its flush, `C` before it clears the store. Between the two either state is right.
struct Journal {
    /// For each key the digests that may be there; nil: none may.
    private(set) var allowed: [String: Set<String?>] = [:]
    /// Durable puts that were acknowledged.
    private(set) var acknowledged = 0

    /// Takes note of one line.
    mutating func note(_ line: Substring) {
        let words = line.split(separator: " ").map(String.init)
        switch words.first {
        case "B" where words.count == 3: allowed[words[1], default: [nil]].insert(words[2])
        case "D" where words.count == 3:
            allowed[words[1]] = [words[2]]
            acknowledged += 1
        case "X" where words.count == 2: allowed[words[1], default: [nil]].insert(nil)
        case "Y" where words.count == 2: allowed[words[1]] = [nil]
        case "C": forgetAll()
        default: break
        }
    }

    /// Every entry may be gone.
    mutating func forgetAll() {
        for key in allowed.keys { allowed[key]?.insert(nil) }
    }

    /// What a store has that the journal rules out.
    func violations(_ store: Store) throws -> [String] {
        var found: [String] = []
        for (key, digests) in allowed {
            let entry = try store.get(Key(key))
            let digest = try entry.map { try Digest.of($0.body.bytes()).hexadecimal }
            if !digests.contains(digest) {
                let expected = digests.map { $0.map { String($0.prefix(8)) } ?? "nothing" }.joined(separator: " or ")
                found.append("\(key): found \(digest.map { String($0.prefix(8)) } ?? "nothing"), expected \(expected)")
            }
        }
        return found
    }
}
