import ArgumentParser
import Larder
import Testing

@testable import CachectlCore
@testable import cachectl

@Suite struct DurationArgumentTests {
    @Test(arguments: [
        ("30s", 30), ("15m", 900), ("15min", 900), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600),
        ("1y", 31_536_000), ("1d12h", 129_600), ("1D 12H", 129_600), ("1.5h", 5400), ("0s", 0),
        ("3", 3), ("1500ms", 1.5), ("1s500ms", 1.5), ("0.25", 0.25),
    ])
    func readsWhatPeopleWrite(text: String, seconds: Double) throws {
        #expect(try DurationArgument.parse(text) == .seconds(seconds))
    }

    @Test(arguments: [
        "", " ", "1d7", "d", "7x", "-7d", "7d-", "1h1d", "1h1h", ".5h", "5.h", "1..5h", "nan", "infs", "1e5s", "٣d",
        "7 days ago",
        "99999999999999999999999999y", "1\u{0}s",
    ])
    func refusesTheRest(text: String) {
        #expect(throws: ValidationError.self) { try DurationArgument.parse(text) }
    }

    @Test func whatRemovesEntriesWantsAUnit() throws {
        #expect(throws: ValidationError.self) { try DurationArgument.parseWithUnit("7") }
        #expect(try DurationArgument.parseWithUnit("7d") == .seconds(7 * 86_400))
    }

    @Test func neverIsALifetime() throws {
        #expect(try DurationArgument.parseLifetime("never") == .never)
        #expect(try DurationArgument.parseLifetime("1h") == .duration(.seconds(3600)))
    }
}

@Suite struct SizeArgumentTests {
    @Test func readsLimits() throws {
        #expect(try SizeArgument.parse("10GB").bytes == 10_000_000_000)
        #expect(try SizeArgument.parseLimit("unlimited") == .unlimited)
        #expect(try SizeArgument.parseFloor("none") == .zero)
        #expect(try SizeArgument.parseCount("unlimited") == .max)
        #expect(try SizeArgument.parseBudget("1MiB") == Budget.minimumBytes)
    }

    @Test(arguments: ["", "10XB", "-1", "1e99", "GB", "10 G B", "9999999999999999999999PB"])
    func refusesWhatIsNoSize(text: String) {
        #expect(throws: ValidationError.self) { try SizeArgument.parse(text) }
        #expect(throws: ValidationError.self) { try SizeArgument.parseBudget(text) }
    }

    @Test func tellsWhatIsTooLargeFromWhatIsNotASize() {
        func message(_ text: String) -> String {
            do {
                _ = try SizeArgument.parse(text)
                return ""
            } catch { return "\(error)" }
        }
        #expect(message("99999999PB").contains("is too large"))
        #expect(message(".5KB").contains("is not a valid size"))
        #expect(message("10XB").contains("is not a valid size"))
    }

    @Test func refusesABudgetNoStoreCanKeep() {
        #expect(throws: ValidationError.self) { try SizeArgument.parseBudget("100KB") }
        #expect(throws: ValidationError.self) { try SizeArgument.parseCount("0") }
    }
}

@Suite struct RenderTests {
    @Test func figuresAreReadable() {
        #expect(Render.count(1_234_567) == "1,234,567")
        #expect(Render.count(-1234) == "-1,234")
        #expect(Render.percent(1, of: 3) == "33.3 %")
        #expect(Render.percent(1, of: 0) == "-")
        #expect(Render.age(.seconds(90_000)) == "1d")
        #expect(Render.elapsed(.seconds(65)) == "1 min 05 s")
        #expect(Render.decimal(-0.04, digits: 1) == "0.0")
    }

    @Test func progressBarIsCutToTheTerminal() {
        #expect(ProgressBar.line("gc", 1, 2, "x", width: 80) == "gc [############------------]  50 %  x")
        #expect(ProgressBar.line("gc", 5, 0, String(repeating: "x", count: 200), width: 40).count == 39)
    }
}

@Suite struct AddressArgumentTests {
    @Test(arguments: [
        ("127.0.0.1:8080", "127.0.0.1", 8080), ("[::1]:0", "::1", 0), ("localhost:80", "localhost", 80),
        ("8080", "127.0.0.1", 8080),
    ])
    func readsAddressAndPort(text: String, host: String, port: Int) throws {
        #expect(try AddressArgument.parse(text) == AddressArgument(host: host, port: port))
    }

    @Test(arguments: ["", ":8080", "nowhere", "a:", "a:70000", "::1:80", "a:+5", "a:-1"])
    func refusesTheRest(text: String) {
        #expect(throws: ValidationError.self) { try AddressArgument.parse(text) }
    }
}
