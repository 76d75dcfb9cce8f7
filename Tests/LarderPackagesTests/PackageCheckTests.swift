import Larder
import LarderHTTP
import LarderPackages
import TestSupport
import Testing

/// The invariants of packages: each is broken by hand, found, and repaired.
@Suite struct PackageCheckTests {
    private func broken(
        _ mode: DisplacementMode = .members, _ damage: (Setting, String) throws -> Void,
        _ check: ([PackageViolation], Setting) async throws -> Void
    ) async throws {
        try await Setting.run { setting in
            var options = InstallOptions()
            options.mode = mode
            try await setting.packages.install(setting.package(["a": "1", "b": "2"]), options)
            try await #expect(setting.packages.check() == [])
            let row = try #require(try setting.keys(PackageKeys.rowPrefix).first)
            try damage(setting, String(row.text.dropFirst(PackageKeys.rowPrefix.count)))
            let found = try await setting.packages.check()
            let repaired = try await setting.packages.check(repairs: true)
            #expect(repaired.map(\.message) == found.map(\.message) && !found.isEmpty)
            try await check(repaired, setting)
        }
    }

    @Test func aGenerationWithoutItsRow() async throws {
        try await broken { setting, generation in
            try setting.store.remove(PackageKeys.row(generation))
        } _: { found, setting in
            #expect(found.map(\.invariant) == [.row] && found[0].isRepaired)
            try await #expect(setting.packages.check() == [])
            try await #expect(setting.offline("http://a.example/a") == "1")
            try await setting.packages.remove("site")
            try await #expect(setting.store.listed().isEmpty)
        }
    }

    @Test func entriesOfNoPackage() async throws {
        try await broken { setting, _ in
            let options = PutOptions(tags: ["larder:p 0123456789abcdef"]).withReservedNames
            try setting.store.put([1], for: PackageKeys.member("0123456789abcdef", "http://a.example/x"), options)
        } _: { found, setting in
            #expect(found.map(\.invariant) == [.row] && found[0].isRepaired)
            // What has a row and no package is removed by the next that looks.
            try await setting.packages.recover()
            #expect(try setting.members() == ["http://a.example/a", "http://a.example/b"])
        }
    }

    @Test func aListThatIsLost() async throws {
        try await broken { setting, generation in
            try setting.store.remove(PackageKeys.list(generation))
        } _: { found, setting in
            #expect(found.map(\.invariant) == [.list] && !found[0].isRepaired)
            #expect(found[0].description.contains("install it again"))
            try await setting.packages.remove("site")
        }
    }

    @Test(arguments: [DisplacementMode.pin, .whole]) func aPinThatIsLost(_ mode: DisplacementMode) async throws {
        try await broken(mode) { setting, generation in
            try setting.store.unpin(reservedTag: PackageKeys.tag(generation))
        } _: { found, setting in
            #expect(found.map(\.invariant) == [.pin] && found[0].isRepaired)
            try await #expect(setting.packages.check() == [])
            let member = try #require(try setting.member("http://a.example/a"))
            try await #expect(setting.store.details(of: member)?.isPinned == true)
        }
    }

    /// A record that cannot be read, such as one of a later version, is not taken for none.
    @Test(arguments: ["{", "0123456789abcdef"]) func aRecordThatCannotBeRead(_ damage: String) async throws {
        try await Setting.run { setting in
            try await setting.packages.install(setting.package(["a": "1"]))
            let key = PackageKeys.table(nil)
            var table = try #require(try setting.table())
            let good = table
            let position = try #require(table.firstIndex(of: UInt8(ascii: "{")))
            // In the record, or in what readers need.
            table[damage == "{" ? position + 1 : 3] = damage == "{" ? 0 : UInt8(ascii: " ")
            let options = PutOptions(tags: [PackageKeys.recordTag]).withReservedNames
            try await setting.store.put(table, for: key, options)
            try await setting.packages.recover()
            await #expect(throws: LarderError.self) {
                try await setting.packages.install(setting.package(["b": "2"], "other.zip") { $0.name = "other" })
            }
            try await setting.packages.recover()
            #expect(try setting.members().filter { $0.hasSuffix("/a") } == ["http://a.example/a"])
            try await #expect(setting.packages.check().map(\.invariant) == [.table])
            try await setting.store.put(good, for: key, options)
            try await setting.packages.recover()
            #expect(try setting.members() == ["http://a.example/a"])
        }
    }

    /// A store without a version sees the entries of all: what another version names is not garbage.
    @Test func thoseOfApplicationVersionsAreTheirs() async throws {
        try await withDirectory { directory in
            let clock = TestClock()
            let path = directory.appending("store")
            for (version, other) in [("1.0", nil), (nil, "1.0"), ("1.0", nil)] as [(String?, String?)] {
                var configuration = Configuration.testing(clock: clock)
                configuration.version = version
                let store = try Store(at: path, configuration)
                let setting = Setting(store, clock, directory)
                if try await setting.packages.packages().isEmpty {
                    let name = version == nil ? "plain" : "versioned"
                    let archive = try setting.package(["a": name], "\(name).zip") { $0.name = name }
                    try await setting.packages.install(archive)
                }
                try await setting.packages.recover()
                try await #expect(setting.packages.check(repairs: true) == [], "\(version ?? "-"), \(other ?? "-")")
                try await #expect(setting.offline("http://a.example/a") == (version == nil ? "plain" : "versioned"))
                try finish(store)
            }
        }
    }

    @Test func aTableThatCannotBeRead() async throws {
        try await broken { setting, _ in
            let key = PackageKeys.table(nil)
            let table = try #require(try setting.store.peek(key)).body.bytes()
            let options = PutOptions(tags: [PackageKeys.recordTag]).withReservedNames
            try setting.store.put(table + Array("0123456789abcdef whole beside - * {}\n".utf8), for: key, options)
        } _: { found, setting in
            #expect(found.map(\.invariant) == [.table] && found[0].isRepaired)
            try await #expect(setting.packages.packages().map(\.name) == ["site"])
        }
    }
}
