import Foundation
import Larder
import LarderHTTP
import LarderPackages
import Synchronization
import SystemPackage
import TestSupport
import Testing

@Suite struct UpgradeTests {
    @Test func anUpgradeIsADifference() async throws {
        try await Setting.run { setting in
            try await setting.packages.install(setting.package(["same": "s", "old": "o", "new": "1"], "1.zip"))
            setting.clock.advance(by: .seconds(100))
            let second = try setting.package(["same": "s", "new": "2", "more": "m"], "2.zip", version: "2") {
                $0.created = Timestamp(microseconds: 1_767_225_600_000_000)
            }
            let result = try await setting.packages.install(second)
            #expect(result.added == 1 && result.replaced == 1 && result.unchanged == 1 && result.removed == 1)
            try await #expect(setting.offline("http://a.example/new") == "2")
            try await #expect(setting.offline("http://a.example/old") == nil)
            #expect(
                try setting.members() == ["http://a.example/more", "http://a.example/new", "http://a.example/same"])
            try await #expect(setting.packages.package("site")?.version == "2")
        }
    }

    @Test func incrementsNeedTheirBase() async throws {
        try await Setting.run { setting in
            let first = try setting.package(["same": "s", "new": "1"], "1.zip")
            let increment = try setting.package(["same": "s", "new": "2"], "2.zip", version: "2") {
                $0.base = first.string
            }
            try await #expect(packageCode { try await setting.packages.install(increment) } == .missingBase)
            try await setting.packages.install(first)
            let result = try await setting.packages.install(increment)
            #expect(result.replaced == 1 && result.unchanged == 1)
            try await #expect(setting.offline("http://a.example/same") == "s")
            try await #expect(setting.packages.install(increment).wasInstalled)
            try await #expect(setting.packages.verify("site", isDeep: true).counts == [.intact: 2])
            // Of a version that is not there any more.
            let other = try setting.package(["same": "s", "new": "3"], "3.zip", version: "3") { $0.base = first.string }
            try await #expect(packageCode { try await setting.packages.install(other) } == .missingBase)
            try await #expect(setting.offline("http://a.example/new") == "2")
        }
    }

    /// An increment cannot bring back what was displaced.
    @Test(arguments: DisplacementMode.allCases) func aBaseWithGaps(_ mode: DisplacementMode) async throws {
        try await Setting.run { setting in
            let first = try setting.package(["same": "s", "new": "1"], "1.zip")
            var options = InstallOptions()
            options.mode = mode
            try await setting.packages.install(first, options)
            let increment = try setting.package(["same": "s", "new": "2"], "2.zip", version: "2") {
                $0.base = first.string
            }
            try await setting.store.remove(#require(try setting.member("http://a.example/same")))
            let code = try await packageCode { try await setting.packages.install(increment) }
            #expect(code == (mode == .members ? nil : .missingBase))
            try await #expect(setting.offline("http://a.example/new") == (mode == .members ? "2" : "1"))
        }
    }

    /// A version that was made earlier than the installed one brings its own fields, with the same content, too.
    @Test func fieldsOfAnEarlierVersion() async throws {
        try await Setting.run { setting in
            let (key, old) = (PackageSigningKey(), setting.clock.now())
            setting.clock.advance(by: .seconds(1_000))
            let later = try setting.package(["a.html": "1"], "2.zip", version: "2")
            try await setting.packages.install(later)
            let signed = try setting.package(["a.html": "1"], "1.zip", version: "1") {
                $0.created = old
                $0.signingKey = key
            } folder: {
                $0.mediaTypes = MediaTypes(["html": "text/plain"])
            }
            var options = InstallOptions()
            options.trustedKeys = [key.publicKey]
            try await #expect(setting.packages.install(signed, options).replaced == 1)
            let response = try #require(try await setting.response("http://a.example/a.html"))
            #expect(response.head.headerFields[.contentType] == "text/plain")
            #expect(response.head.headerFields[.lastModified] == "Thu, 01 Jan 2026 00:00:00 GMT")
        }
    }

    /// A crawl without a network makes a package of nothing.
    @Test func aPackageOfNothing() async throws {
        try await Setting.run { setting in
            try await setting.packages.install(setting.package(["a": "1"]))
            let empty = try setting.package([:], "empty.zip", version: "2")
            try await #expect(packageCode { try await setting.packages.install(empty) } == .badManifest)
            try await #expect(setting.offline("http://a.example/a") == "1")
        }
    }

    /// The same without a list, and with nothing but user data.
    @Test func aPackageWithoutResponses() async throws {
        try await Setting.run { setting in
            try await setting.packages.install(setting.package(["a": "1"]))
            var options = InstallOptions()
            options.name = "site"
            let data = RawZip.File(".userdata/d", Array("d".utf8))
            for (number, zip) in [
                RawZip([.init("manifest.afcache")]), RawZip([data, .init("manifest.afcache")]), RawZip([data]),
            ].enumerated() {
                let path = try setting.archive(zip, "\(number).zip")
                try await #expect(packageCode { try await setting.packages.install(path, options) } == .badManifest)
                try await #expect(setting.offline("http://a.example/a") == "1")
            }
            let own = try setting.package([:], "data.zip", version: "2") { _ in
            } folder: {
                try? Data("d".utf8).write(to: URL(fileURLWithPath: $0.folder + "/d"))
                $0.dataFolder = $0.folder
                $0.maxItemBytes = 0
            }
            try await #expect(packageCode { try await setting.packages.install(own) } == .badManifest)
            try await #expect(setting.offline("http://a.example/a") == "1")
            try await #expect(setting.packages.dataNames(of: "site") == [])
            try await #expect(setting.packages.verify("site", isDeep: true).isWhole)
        }
    }

    @Test func baseURLsThatAreNone() async throws {
        try await Setting.run { setting in
            for base in [
                "ftp://a.example", "http://a.example/?q=1", "a.example", "http://", "http://a.example/#f",
                "http://u@a.example", "http://[::1", "http://[::1]x", "http://..", "http://a.example:70000",
            ] {
                #expect(throws: PackageError.self) { try setting.package(["a": "1"], base: base) }
            }
        }
    }

    @Test func userDataOfAnIncrement() async throws {
        try await Setting.run { setting in
            func data(_ options: inout FolderOptions) { options.dataFolder = options.folder }
            let first = try setting.package(["a": "1"], "1.zip", folder: data)
            try await setting.packages.install(first)
            let second = try setting.package(
                ["a": "1", "b": "2"], "2.zip", version: "2", { $0.base = first.string }, folder: data)
            try await setting.packages.install(second)
            try await #expect(setting.packages.dataNames(of: "site") == ["a", "b"])
            try await #expect(setting.packages.data("a", of: "site")?.bytes() == Array("1".utf8))
        }
    }

    @Test(arguments: DisplacementMode.allCases, DisplacementMode.allCases)
    func theModeChanges(_ from: DisplacementMode, _ to: DisplacementMode) async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a": "1", "b": "2"])
            var options = InstallOptions()
            options.mode = from
            try await setting.packages.install(archive, options)
            options.mode = to
            let result = try await setting.packages.install(archive, options)
            #expect(result.wasInstalled == (from == to) && result.package.mode == to)
            try await #expect(setting.offline("http://a.example/a") == "1")
            let member = try #require(try setting.member("http://a.example/a"))
            let entry = try #require(try await setting.store.details(of: member))
            #expect(entry.isPinned == (to != .members))
            #expect(try setting.hasOwner() == (to != .members))
            try await #expect(setting.packages.verify("site").counts == [.intact: 2])
            try await setting.packages.remove("site")
            try await #expect(setting.store.listed().isEmpty)
            #expect(try setting.store.pinnedTags() == ["larder: records of packages"])
        }
    }

    /// Members that stay take the place of stale responses of an earlier date.
    @Test func keptMembersReplaceOlderResponses() async throws {
        try await Setting.run { setting in
            for name in ["a", "b"] {
                try await setting.fetched("http://a.example/\(name)", "old", cacheControl: "max-age=5")
            }
            setting.clock.advance(by: .seconds(10))
            try await setting.packages.install(setting.package(["a": "1", "b": "2"]))
            setting.clock.advance(by: .seconds(10))
            try await setting.fetched("http://a.example/b", "new")
            try await setting.packages.remove("site", keepsMembers: true)
            try await #expect(setting.offline("http://a.example/a") == "1")
            try await #expect(setting.offline("http://a.example/b") == "new")
        }
    }

    @Test(arguments: DisplacementMode.allCases) func removing(_ mode: DisplacementMode) async throws {
        try await Setting.run { setting in
            var options = InstallOptions()
            options.mode = mode
            let archive = try setting.package(["a": "1", "b": "2"])
            try await setting.packages.install(archive, options)
            try await setting.fetched("http://a.example/other", "network")
            try await setting.packages.remove("site", keepsMembers: true)
            try await #expect(setting.packages.packages().isEmpty)
            try await #expect(setting.offline("http://a.example/a") == "1")
            let entry = try #require(try await setting.store.details(of: "http://a.example/a"))
            #expect(!entry.isPinned && entry.tags.isEmpty)
            #expect(try setting.members().isEmpty)
            try await #expect(setting.packages.install(archive, options).added == 2)
            try await setting.packages.remove("site")
            try await #expect(setting.offline("http://a.example/a") == "1")
            try await #expect(setting.offline("http://a.example/other") == "network")
        }
    }
}

@Suite struct ConflictTests {
    private let url = "http://a.example/a"

    @Test(arguments: [
        ("max-age=3600", ConflictMode.keepNewer, "network"),
        ("max-age=5", .keepNewer, "package"),
        ("max-age=5", .keepExisting, "network"),
        ("max-age=3600", .replace, "package"),
    ]) func whatIsUsed(_ cacheControl: String, _ mode: ConflictMode, _ expected: String) async throws {
        try await Setting.run { setting in
            try await setting.fetched(url, "network", cacheControl: cacheControl)
            // The package is made later than that came.
            setting.clock.advance(by: .seconds(10))
            var options = InstallOptions()
            options.conflicts = mode
            let result = try await setting.packages.install(setting.package(["a": "package", "b": "2"]), options)
            #expect(result.added == 2)
            try await #expect(setting.offline(url) == expected)
            try await #expect(setting.offline("http://a.example/b") == "2")
            try await #expect(setting.packages.verify("site").counts == [.intact: 2])
            // What came over the network is not the package's to remove, unless it takes its place.
            try await setting.packages.remove("site")
            try await #expect(setting.offline(url) == (mode == .replace ? nil : "network"))
        }
    }

    /// With `replace`, what was stored before is not found from the commit on, in whatever form, and removed after it.
    @Test func whatIsReplacedIsNotFound() async throws {
        let copies = Mutex<[FilePath]>([])
        let place = Mutex<Setting?>(nil)
        try await Setting.run(reach: { step in
            guard step == "install.committed", let setting = place.withLock({ $0 }) else { return }
            let copy = setting.directory.appending("copy")
            try? TestFiles.copy(setting.store.path, to: copy)
            copies.withLock { $0.append(copy) }
        }) { setting in
            place.withLock { $0 = setting }
            for name in ["a", "b", "other"] { try await setting.fetched("http://a.example/\(name)", "network") }
            setting.clock.advance(by: .seconds(10))
            var options = InstallOptions()
            options.conflicts = .replace
            try await setting.packages.install(setting.package(["a": "1", "b": "2"]), options)
            #expect(try setting.keys() == ["http://a.example/other"])
            // What comes later is used.
            setting.clock.advance(by: .seconds(10))
            try await setting.fetched(url, "newer")
            try await #expect(setting.offline(url) == "newer")
            place.withLock { $0 = nil }
            for path in copies.withLock({ $0 }) {
                let store = try Store(at: path, .testing(clock: setting.clock))
                let copy = Setting(store, setting.clock, setting.directory)
                // The first lookup that finds nothing tells the cache of the package.
                try await #expect(copy.offline("http://a.example/none") == nil)
                try await #expect(copy.offline(url) == "1")
                try await #expect(copy.offline("http://a.example/other") == "network")
                try await copy.packages.recover()
                #expect(try copy.keys() == ["http://a.example/other"])
                try finish(store)
            }
        }
    }

    /// Of stale responses, the one with the later date is used, as between any stored responses.
    @Test func withoutLastModifiedTheDateCounts() async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a": "package"])
            setting.clock.advance(by: .seconds(60))
            try await setting.fetched(url, "network")
            try await setting.packages.install(archive)
            setting.clock.advance(by: .seconds(7_200))
            try await #expect(setting.offline(url) == "network")
            // A manifest of AFCache does not say when it was made: its members are as new as the installation.
            let plain = RawZip.manifest(
                ["\(url) ; NULL ; Fri, 02 Jan 2026 00:00:00 GMT"], [.init("a.example/a", Array("plain".utf8))])
            try await setting.packages.install(setting.archive(plain, "plain.zip"))
            try await #expect(setting.offline(url) == "plain")
        }
    }

    /// What the origin has said since the package was made counts, as long as it is fresh, whatever Last-Modified says.
    @Test func aFreshResponseIsNotGivenUp() async throws {
        try await Setting.run { setting in
            let archive = try setting.package(["a": "package"])
            setting.clock.advance(by: .seconds(60))
            try await setting.fetched(
                url, "network", lastModified: "Mon, 01 Dec 2025 00:00:00 GMT", cacheControl: "max-age=864000")
            try await setting.packages.install(archive)
            try await #expect(setting.offline(url) == "network")
        }
    }

    /// A member that the origin has confirmed since is newer than the package, and stays the package's.
    @Test(arguments: DisplacementMode.allCases) func aConfirmedMember(_ mode: DisplacementMode) async throws {
        try await Setting.run { setting in
            var options = InstallOptions()
            options.mode = mode
            options.restoresMembers = true
            let archive = try setting.package(["a": "package"], maxAge: 10)
            try await setting.packages.install(archive, options)
            setting.clock.advance(by: .seconds(60))
            try await setting.confirmed(url)
            let response = try #require(try await setting.response(url))
            #expect(response.freshSeconds == 3_600)
            #expect(try setting.keys().isEmpty)
            let member = try #require(try setting.member(url))
            let entry = try #require(try await setting.store.details(of: member))
            #expect(entry.isPinned == (mode != .members) && entry.expires == nil)
            try await #expect(setting.packages.install(archive, options).unchanged == 1)
            try await #expect(setting.response(url)?.freshSeconds == 3_600)
        }
    }

    @Test func whatIsNoResponseStays() async throws {
        try await Setting.run { setting in
            try await setting.store.put([1, 2, 3], for: Key(url))
            try await setting.packages.install(setting.package(["a": "package"]))
            #expect(setting.store[Key(url)] == [1, 2, 3])
            try await #expect(setting.offline(url) == "package")
        }
    }

    /// What came over the network since is used while it is fresh. A member that the origin has replaced is stale.
    @Test func aMemberThatCameOverTheNetworkSince() async throws {
        try await Setting.run { setting in
            try await setting.packages.install(setting.package(["a": "1", "b": "1"], "1.zip"))
            setting.clock.advance(by: .seconds(50_000))
            try await setting.reloaded(url, "network")
            try await #expect(setting.offline(url) == "network")
            try await setting.store.remove(Key(url))
            let old = try #require(try await setting.response(url))
            #expect(old.freshSeconds ?? 0 <= 0)
            try await #expect(String(decoding: old.body.bytes(), as: UTF8.self) == "1")
            try await setting.fetched(url, "network")
            let second = try setting.package(["a": "2", "b": "2"], "2.zip", version: "2") {
                $0.created = Timestamp(microseconds: 1_767_225_700_000_000)
            }
            let result = try await setting.packages.install(second)
            #expect(result.replaced == 2)
            try await #expect(setting.offline(url) == "network")
        }
    }
}
