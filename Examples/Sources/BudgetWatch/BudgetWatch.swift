import Larder
import Recipes
import Synchronization

@main
enum BudgetWatch {
    static func main() async throws {
        let displaced = Displaced()
        var configuration = Configuration(budget: Budget(bytes: .mebibytes(8), largestEntry: .mebibytes(1)))
        // On the thread that made room: count and return.
        configuration.observer = { event in
            if case .displaced(_, let length, let reason) = event, reason == .leastRecentlyUsed {
                displaced.add(length)
            }
        }
        let store = try Store(at: "store", configuration)

        try await store.put(page(0), for: "logo", PutOptions(isPinned: true))
        var most = ByteCount.zero
        for number in 1...1_000 {
            try await store.put(page(number), for: Key("page \(number)"))
            // Read often, so it is never the least recently used one.
            try await expect(store.get("page 1") != nil)
            if number % 100 == 0 { most = max(most, try await store.perform { try $0.statistics().allocatedBytes }) }
        }
        let statistics = try await store.perform { try $0.statistics() }
        print("\(statistics.entryCount) entries in \(statistics.allocatedBytes), never more than \(most)")
        print("displaced \(displaced.count) entries, \(displaced.bytes)")
        expect(most <= .mebibytes(8) && displaced.count > 0)
        try expect(store.contains("logo") && store.contains("page 1") && !store.contains("page 2"))

        // The limit changes at run time, for every process; the call returns when it holds.
        try await store.perform { try $0.setBudget(Budget(bytes: .mebibytes(4))) }
        print("after the change:", try await store.perform { try $0.statistics().allocatedBytes })
        try await expect(store.perform { try $0.statistics().allocatedBytes } <= .mebibytes(4))

        // A body that can never fit is refused, and displaces nothing.
        do {
            try await store.put([UInt8](repeating: 0, count: 5 << 20), for: "huge")
            expect(false, "a body larger than the budget was stored")
        } catch let error as LarderError where error.code == .tooLarge {
            print("refused:", error.message)
        }
        try await store.close()
    }

    static func page(_ number: Int) -> [UInt8] { Array("page \(number)".utf8) + [UInt8](repeating: 0, count: 20_000) }

    final class Displaced: Sendable {
        private let sum = Mutex((count: 0, bytes: Int64(0)))

        func add(_ length: ByteCount) {
            sum.withLock {
                $0.count += 1
                $0.bytes += length.bytes
            }
        }

        var count: Int { sum.withLock(\.count) }
        var bytes: ByteCount { ByteCount(sum.withLock(\.bytes)) }
    }
}
