import Larder
import Recipes

@main
enum Housekeeping {
    static func main() async throws {
        let store = try Store(at: "store")
        for number in 0..<30 {
            let host = number % 3 == 0 ? "a.example" : "b.example"
            let options = PutOptions(tags: number % 2 == 0 ? ["news"] : ["archive"], isPinned: number == 0)
            try await store.put(
                [UInt8](repeating: 0, count: 1_000 * number), for: Key("https://\(host)/\(number)"), options)
        }

        // What takes the space of one host?
        let large: Selection = .host("b.example") && .atLeast(.kibibytes(20))
        var bytes: Int64 = 0
        for try await entry in try store.entries(large) { bytes += entry.length.bytes }
        print("\(try await store.perform { try $0.keys(large).count }) large entries of b.example: \(ByteCount(bytes))")
        try await expect(store.perform { try $0.keys(large).count } == 6)

        // Everything that is not news, but what is pinned stays.
        let old: Selection = !.tag("news") && !.pinned
        let removed = try await store.remove(old) { print("looked at \($0.examined), removed \($0.removed)") }
        expect(removed == 15)

        // What was not used since the program started: all but what it reads now.
        let start = SystemClock().now()
        for key in ["https://a.example/6", "https://b.example/2"] as [Key] { _ = try await store.get(key) }
        try await store.perform { try $0.flush() }  // uses are written with the next commit
        try await store.remove(.unusedSince(start) && !.pinned)
        let left = try await store.perform { try $0.keys() }
        print("left:", left)
        expect(left == ["https://a.example/0", "https://a.example/6", "https://b.example/2"])

        // The pinned entry too, and then give the free pages of the index back.
        try await store.unpin("https://a.example/0")
        try await store.remove(.keys(["https://a.example/0"]) || .expired)
        let report = try await store.perform { try $0.collect(compact: true) }
        print("freed \(report.freedBytes); \(try await store.perform { try $0.statistics().entryCount }) entries left")
        try await expect(store.perform { try $0.statistics().entryCount } == 2)
        try await store.close()
    }
}
