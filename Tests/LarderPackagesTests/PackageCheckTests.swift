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
