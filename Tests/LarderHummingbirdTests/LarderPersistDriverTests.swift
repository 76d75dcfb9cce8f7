import Hummingbird
import HummingbirdTesting
import Larder
import LarderHummingbird
import Logging
import TestSupport
import Testing

/// Hummingbird's persist framework on disk.
struct LarderPersistDriverTests {
    private struct User: Codable, Equatable, Sendable {
        var name: String
        var age: Int
    }

    private let user = User(name: "Ada", age: 36)

    private func withDriver(_ body: (LarderPersistDriver, Store, TestClock) async throws -> Void) async throws {
        let clock = TestClock()
        try await withStore(configuration: .testing(clock: clock)) { store in
            try await body(LarderPersistDriver(store, clock: clock), store, clock)
        }
    }

    @Test func createSetGetRemove() async throws {
        try await withDriver { driver, _, _ in
            try await #expect(driver.get(key: "u", as: User.self) == nil)
            try await driver.create(key: "u", value: user)
            try await #expect(driver.get(key: "u", as: User.self) == user)
            await #expect(throws: PersistError.duplicate) { try await driver.create(key: "u", value: user) }
            try await driver.set(key: "u", value: User(name: "Bob", age: 1))
            try await #expect(driver.get(key: "u", as: User.self)?.name == "Bob")
            try await driver.remove(key: "u")
            try await driver.remove(key: "u")
            try await #expect(driver.get(key: "u", as: User.self) == nil)
            try await driver.create(key: "u", value: 5)
            try await #expect(driver.get(key: "u", as: Int.self) == 5)
            try await driver.set(key: "text", value: "top-level text")
            try await #expect(driver.get(key: "text", as: String.self) == "top-level text")
        }
    }

    @Test func aValueOfAnotherType() async throws {
        try await withDriver { driver, store, _ in
            try await driver.create(key: "u", value: user)
            await #expect(throws: PersistError.invalidConversion) { try await driver.get(key: "u", as: Int.self) }
            await #expect(throws: PersistError.invalidConversion) { try await driver.get(key: "u", as: [User].self) }
            try await store.put([0xFF, 0], for: "persist/u")
            await #expect(throws: PersistError.invalidConversion) { try await driver.get(key: "u", as: User.self) }
            await #expect(throws: EncodingError.self) { try await driver.set(key: "u", value: Double.infinity) }
            await #expect(throws: LarderError.self) {
                try await driver.set(key: String(repeating: "k", count: 70_000), value: 1)
            }
        }
    }

    @Test func expiry() async throws {
        try await withDriver { driver, _, clock in
            try await driver.create(key: "a", value: 1, expires: .seconds(60))
            try await driver.create(key: "b", value: 1)
            clock.advance(by: .seconds(20))
            let found = try await driver.getWithTTL(key: "a", as: Int.self)
            #expect(found?.object == 1 && found?.ttl == .seconds(40))
            let forever = try await driver.getWithTTL(key: "b", as: Int.self)
            #expect(forever?.object == 1 && forever?.ttl == nil)
            // The expiry stays unless another is given.
            try await driver.set(key: "a", value: 2)
            try await #expect(driver.getWithTTL(key: "a", as: Int.self)?.ttl == .seconds(40))
            try await driver.set(key: "b", value: 2, expires: .seconds(10))
            clock.advance(by: .seconds(39))
            try await #expect(driver.get(key: "a", as: Int.self) == 2)
            try await #expect(driver.get(key: "b", as: Int.self) == nil)
            clock.advance(by: .seconds(2))
            try await #expect(driver.get(key: "a", as: Int.self) == nil)
            // What has expired is not there.
            try await driver.create(key: "a", value: 3)
            try await #expect(driver.getWithTTL(key: "a", as: Int.self)?.ttl == nil)
        }
    }

    @Test func tidyRemovesWhatHasExpired() async throws {
        try await withDriver { driver, store, clock in
            for number in 0..<10 {
                try await driver.create(key: "\(number)", value: number, expires: .seconds(number < 5 ? 10 : 100))
            }
            try await store.put([1], for: "of others", PutOptions(lifetime: .duration(.seconds(10))))
            clock.advance(by: .seconds(11))
            try await driver.tidy()
            let keys: [Key] = try await store.perform { try $0.keys(.prefix("persist/")) }
            #expect(keys.count == 5)
            try await #expect(store.get("of others", includingExpired: true) != nil)
        }
    }

    @Test func valuesSurviveReopening() async throws {
        try await withDirectory { path in
            let store = try Store(at: path, .testing())
            try await LarderPersistDriver(store).create(key: "u", value: user, expires: .seconds(3_600))
            try await store.close()
            let again = try Store(at: path, .testing())
            let driver = LarderPersistDriver(again)
            try await #expect(driver.get(key: "u", as: User.self) == user)
            await #expect(throws: PersistError.duplicate) { try await driver.create(key: "u", value: user) }
            try finish(again)
        }
    }

    /// A budget that is shared with a cache leaves what was persisted.
    @Test func valuesAreNotDisplaced() async throws {
        let budget = Budget(bytes: .mebibytes(1))
        try await withStore(configuration: .testing(budget: budget)) { store in
            let driver = LarderPersistDriver(store)
            try await driver.create(key: "u", value: user)
            for number in 0..<100 { try await store.put([UInt8](repeating: 1, count: 50_000), for: Key("\(number)")) }
            try await #expect(driver.get(key: "u", as: User.self) == user)
        }
    }

    @Test func oneOfManyCreates() async throws {
        try await withDriver { driver, _, _ in
            let winners = await withTaskGroup(of: Int.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        do {
                            try await driver.create(key: "one", value: number)
                            return 1
                        } catch {
                            return 0
                        }
                    }
                }
                return await group.reduce(0, +)
            }
            #expect(winners == 1)
        }
    }

    /// One value of many stays whole, and none of them loses the expiry.
    @Test func manySetsAtOnceKeepTheExpiry() async throws {
        try await withDriver { driver, _, _ in
            try await driver.create(key: "one", value: 0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 1...50 { group.addTask { try await driver.set(key: "one", value: number) } }
                group.addTask { try await driver.set(key: "one", value: 0, expires: .seconds(60)) }
                try await group.waitForAll()
            }
            let found = try #require(await driver.getWithTTL(key: "one", as: Int.self))
            #expect((0...50).contains(found.object) && found.ttl == .seconds(60))
        }
    }

    /// A body over the inline threshold is a file; the same content may come again and again.
    @Test func longValues() async throws {
        let long = String(repeating: "long ", count: 100_000)
        try await withDriver { driver, store, _ in
            try await driver.create(key: "a", value: long, expires: .seconds(60))
            for _ in 0..<3 { try await driver.set(key: "a", value: long) }
            try await driver.set(key: "b", value: long)
            try await #expect(driver.get(key: "a", as: String.self) == long)
            await #expect(throws: PersistError.duplicate) { try await driver.create(key: "a", value: long) }
            try await driver.remove(key: "a")
            try await #expect(driver.get(key: "b", as: String.self) == long)
            try await #expect(store.figures().entryCount == 1)
        }
    }

    @Test func lifetimesAtTheirLimits() async throws {
        try await withDriver { driver, _, clock in
            for expires in [Duration.zero, .seconds(-5)] {
                try await driver.set(key: "past", value: 1, expires: expires)
                try await #expect(driver.get(key: "past", as: Int.self) == nil)
                try await driver.create(key: "past", value: 1, expires: expires)
            }
            try await driver.set(key: "far", value: 1, expires: .seconds(Int64.max))
            clock.advance(by: .seconds(1_000_000_000))
            try await #expect(driver.get(key: "far", as: Int.self) == 1)
        }
    }

    @Test func keysThatAreNoKeys() async throws {
        try await withStore { store in
            let driver = LarderPersistDriver(store, prefix: "")
            await #expect(throws: LarderError.self) { try await driver.create(key: "", value: 1) }
            await #expect(throws: LarderError.self) { try await driver.set(key: "", value: 1) }
            try await #expect(driver.get(key: "", as: Int.self) == nil)
        }
    }

    /// After the store is closed each call fails, and says so.
    @Test func aClosedStore() async throws {
        try await withDirectory { path in
            let store = try Store(at: path.appending("store"), .testing())
            let driver = LarderPersistDriver(store)
            try await driver.create(key: "a", value: 1)
            try await store.close()
            for call in [
                { try await driver.create(key: "b", value: 1) }, { try await driver.set(key: "a", value: 1) },
                { _ = try await driver.get(key: "a", as: Int.self) }, { try await driver.remove(key: "a") },
                { try await driver.tidy() },
            ] as [@Sendable () async throws -> Void] {
                try await #expect(code(call) == .closed)
            }
        }
    }

    @Test func driversWithPrefixesOfTheirOwn() async throws {
        try await withStore { store in
            let (one, other) = (LarderPersistDriver(store, prefix: "1/"), LarderPersistDriver(store, prefix: "2/"))
            try await one.create(key: "k", value: 1)
            try await #expect(other.get(key: "k", as: Int.self) == nil)
        }
    }

    @Test func inAnApplication() async throws {
        try await withDriver { driver, _, _ in
            let router = Router()
            router.put("visits/:name") { _, context -> String in
                let name = try context.parameters.require("name")
                let count = (try await driver.get(key: name, as: Int.self) ?? 0) + 1
                try await driver.set(key: name, value: count)
                return "\(count)"
            }
            var logger = Logger(label: "test")
            logger.logLevel = .critical
            let app = Application(router: router, services: [driver], logger: logger)
            try await app.test(.live) { client in
                for expected in ["1", "2", "3"] {
                    let response = try await client.execute(uri: "/visits/ada", method: .put)
                    #expect(String(buffer: response.body) == expected)
                }
            }
        }
    }
}
