import Hummingbird
import Larder
import LarderHummingbird

extension AdaptersBench {
    private struct Session: Codable, Sendable {
        var user = "ada.lovelace@example.org"
        var roles = ["reader", "writer", "editor"]
        var basket = Array(0..<20)
        var theme = "dark"
    }

    /// Values of 150 bytes in `MemoryPersistDriver` and in `LarderPersistDriver`.
    static func measureDrivers(_ store: Store, seconds: Int, rounds: Int) async throws {
        let drivers: [any PersistDriver] = [MemoryPersistDriver(), LarderPersistDriver(store)]
        let session = Session()
        for driver in drivers {
            for number in 0..<1_000 {
                try await driver.set(key: "known \(number)", value: session, expires: .seconds(3_600))
            }
        }
        func measure(_ what: String, _ call: @escaping @Sendable (any PersistDriver, Int) async throws -> Void)
            async throws
        {
            let bodies = drivers.map { driver in { @Sendable (number: Int) in try await call(driver, number) } }
            printRow(what, try await rates(seconds: seconds, rounds: rounds, bodies))
        }
        try await measure("get") { driver, number in
            guard try await driver.get(key: "known \(number % 1_000)", as: Session.self) != nil else {
                fatalError("lost")
            }
        }
        try await measure("set with expires") { driver, number in
            try await driver.set(key: "known \(number % 1_000)", value: session, expires: .seconds(3_600))
        }
        try await measure("set") { driver, number in
            try await driver.set(key: "known \(number % 1_000)", value: session)
        }
        try await measure("create and remove") { driver, number in
            try await driver.create(key: "\(number)", value: session, expires: .seconds(3_600))
            try await driver.remove(key: "\(number)")
        }
    }
}
