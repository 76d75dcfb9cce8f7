import Larder

/// The durable entries that a store must have, according to its workers' reports.
///
/// A worker prints `B key digest` before a durable put and `D key digest` after it, `X key` and `Y key` before and
/// after a durable removal, or one and its flush, `C` and `Z` before and after it clears the store. Between the two
/// either state is right.
struct Journal {
    /// For each key the digests that may be there; nil: none may.
    private(set) var allowed: [String: Set<String?>] = [:]
    /// Durable puts that were acknowledged.
    private(set) var acknowledged = 0
    /// Workers that are clearing the store.
    private var clearing = 0
    /// Beginnings and ends of clears so far, and for each key how many of them there were when its last put began.
    private var clears = 0
    private var begun: [String: Int] = [:]

    /// Records one line.
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

    /// Records a line that was printed before a power loss; the lines of all workers come in the order in which they
    /// were printed.
    mutating func noteInOrder(_ line: Substring) {
        let key = line.split(separator: " ").dropFirst().first.map(String.init) ?? ""
        switch line.first {
        case "C", "Z":
            clearing += line.first == "C" ? 1 : -1
            clears += 1
            forgetAll()
        case "B":
            begun[key] = clears
            note(line)
        // A clear that ran during a put may have removed it, whichever ended first.
        case "D" where clearing > 0 || begun[key] != clears: note("B" + line.dropFirst())
        default: note(line)
        }
    }

    /// The workers have ended: none of them clears the store.
    mutating func endWorkers() { clearing = 0 }

    /// Keys that must be there.
    var promised: Int { allowed.values.count { !$0.contains(nil) } }

    /// The state in lines that `init(lines:)` reads.
    var lines: String {
        allowed.map { key, digests in "\(key) " + digests.map { $0 ?? "-" }.joined(separator: " ") }
            .joined(separator: "\n")
    }

    init() {}

    init(lines: String) {
        for line in lines.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            allowed[words[0]] = Set(words.dropFirst().map { $0 == "-" ? nil : $0 })
        }
    }

    /// Every entry may be gone.
    mutating func forgetAll() {
        for key in allowed.keys { allowed[key]?.insert(nil) }
    }

    /// What in a store contradicts the journal.
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
