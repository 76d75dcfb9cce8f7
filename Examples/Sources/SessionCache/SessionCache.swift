import Larder
import Recipes

@main
enum SessionCache {
    static func main() async throws {
        var configuration = Configuration()
        configuration.memoryLimit = .mebibytes(1)
        let store = try Store(at: "store", configuration)

        // Secrets: never written to disk, seen by this process only.
        let inMemory = PutOptions(lifetime: .duration(.seconds(900)), storagePolicy: .memoryOnly)
        try await store.put(Array("token".utf8), for: "session:1", inMemory)
        // Large and of no use to the next start: on disk, removed when the store is closed.
        try await store.put([UInt8](repeating: 0, count: 500_000), for: "scratch", PutOptions(storagePolicy: .session))
        try await store.put(Array("dark".utf8), for: "theme")

        // Memory has a limit of its own: the least recently used entries leave, pinned ones stay.
        try await store.pin("session:1")
        let session = [UInt8](repeating: 0, count: 10_000)
        for number in 2...300 { try await store.put(session, for: Key("session:\(number)"), inMemory) }
        let statistics = try await store.perform { try $0.statistics() }
        print("\(statistics.memoryEntryCount) sessions in \(statistics.memoryBytes); \(statistics.entryCount) on disk")
        expect(statistics.memoryBytes <= .mebibytes(1) && statistics.entryCount == 2)
        try expect(store.contains("session:1") && store.contains("session:300") && !store.contains("session:2"))
        try await store.close()

        let next = try Store(at: "store")
        print("after a restart:", try await next.perform { try $0.keys() })
        try await expect(next.perform { try $0.keys() } == ["theme"])
        try await next.close()

        // For a test, or a run that shall leave nothing at all: a store in the temporary directory.
        let ephemeral = try await Store.ephemeral(Configuration(budget: Budget(bytes: .mebibytes(16))))
        try await ephemeral.put(Array("hello".utf8), for: "greeting")
        expect(ephemeral["greeting"] == Array("hello".utf8))
        let path = ephemeral.path
        try await ephemeral.close()
        print("removed", path)
    }
}
