import Foundation
import Larder
import LarderHTTP
import LarderPackages
import SystemPackage
import TestSupport
import Testing

@Suite struct DisplacementTests {
    private let names = (0..<40).map { "f\($0)" }

    private func install(_ setting: Setting, _ mode: DisplacementMode) async throws {
        let files = Dictionary(
            uniqueKeysWithValues: names.map { ($0, $0 + String(repeating: "x", count: 20_000)) })
        var options = InstallOptions()
        options.mode = mode
        try await setting.packages.install(setting.package(files), options)
    }

    private func press(_ setting: Setting, _ count: Int, from first: Int = 0, _ step: () async throws -> Void = {})
        async throws
    {
        for number in first..<(first + count) {
            var bytes = [UInt8](repeating: UInt8(number & 0xFF), count: 30_000)
            bytes[0] = UInt8(number >> 8)
            try await setting.store.put(bytes, for: Key("other \(number)"))
            if number % 20 == 0 { try await step() }
        }
    }

    private func found(_ setting: Setting) async throws -> Int {
        var count = 0
        for name in names where try await setting.response("http://a.example/\(name)") != nil { count += 1 }
        return count
    }

    private static let budget = Budget(bytes: .mebibytes(4))

    @Test func pinnedMembersStay() async throws {
        try await Setting.run(budget: Self.budget) { setting in
            try await install(setting, .pin)
            try await press(setting, 400)
            try await #expect(found(setting) == 40)
            try await #expect(setting.packages.verify("site", isDeep: true).counts == [.intact: 40])
        }
    }

    /// A response that came over the network before is used while it is there; the member stays for after it.
    @Test func aPinnedMemberStaysBesideAnother() async throws {
        try await Setting.run(budget: Self.budget) { setting in
            let url = "http://a.example/f7"
            try await setting.fetched(url, "network")
            try await install(setting, .pin)
            try await #expect(setting.offline(url) == "network")
            try await press(setting, 400)
            try #expect(!setting.store.contains(Key(url)))
            try await #expect(setting.offline(url)?.hasPrefix("f7x") == true)
            try await #expect(found(setting) == 40)
        }
    }

    /// The installation itself displaces others: before its first member is there, nothing has the tag that it pins.
    @Test(arguments: [DisplacementMode.pin, .whole]) func isKeptInAFullStore(_ mode: DisplacementMode) async throws {
        try await Setting.run(budget: Self.budget) { setting in
            try await press(setting, 200)
            try await install(setting, mode)
            try await #expect(setting.packages.check() == [])
            if mode == .pin {
                try await press(setting, 200, from: 200)
                try await #expect(found(setting) == 40)
            }
        }
    }

    /// A budget below what is pinned keeps no one from removing the package.
    @Test func canBeRemovedOverBudget() async throws {
        try await Setting.run(budget: Self.budget) { setting in
            try await install(setting, .pin)
            _ = try? await setting.store.perform { try $0.setBudget(Budget(bytes: .mebibytes(1))) }
            try await setting.packages.remove("site")
            try await #expect(setting.store.listed().isEmpty)
        }
    }

    /// Near the budget, what is left of it gives way to the same package.
    @Test func aDisplacedPackageIsInstalledAgain() async throws {
        try await Setting.run(budget: Budget(bytes: .megabytes(12))) { setting in
            let files = Dictionary(
                uniqueKeysWithValues: (0..<10).map { ("f\($0)", "\($0)" + String(repeating: "x", count: 1_000_000)) })
            var options = InstallOptions()
            options.mode = .whole
            let archive = try setting.package(files)
            try await setting.packages.install(archive, options)
            for number in 0..<3 {
                try await setting.store.put([UInt8](repeating: UInt8(number), count: 1_000_000), for: Key("\(number)"))
            }
            try await #expect(setting.packages.package("site")?.state == .displaced)
            try await #expect(setting.packages.install(archive, options).package.state == .installed)
            try await #expect(setting.offline("http://a.example/f9")?.hasPrefix("9x") == true)
        }
    }

    @Test func membersGoLikeOthers() async throws {
        try await Setting.run(budget: Self.budget) { setting in
            try await install(setting, .members)
            let used = "http://a.example/f7"
            try await press(setting, 400) { try await #expect(setting.response(used) != nil) }
            try await #expect(found(setting) == 1)
            let report = try await setting.packages.verify("site")
            #expect(report.counts == [.intact: 1, .missing: 39] && !report.isWhole)
            try await #expect(setting.packages.package("site")?.state == .installed)
        }
    }

    /// Never some of them; and not while one of them is in use.
    @Test func aPackageGoesAsAWhole() async throws {
        try await Setting.run(budget: Self.budget) { setting in
            try await install(setting, .whole)
            try await press(setting, 400) { try await #expect(setting.response("http://a.example/f7") != nil) }
            try await #expect(found(setting) == 40)
            try await #expect(setting.packages.package("site")?.state == .installed)
            var counts: Set<Int> = []
            try await press(setting, 400, from: 400) {
                // Without a use: what a reader would find.
                counts.insert(try setting.hasOwner() ? 40 : 0)
            }
            try await #expect(found(setting) == 0)
            #expect(counts.contains(0))
            try await #expect(setting.packages.package("site")?.state == .displaced)
            try await #expect(setting.packages.verify("site").counts == [.missing: 40])
            // All the room was given to others.
            #expect(try setting.members().isEmpty)
            // It comes back.
            try await install(setting, .whole)
            try await #expect(found(setting) == 40)
            try await setting.packages.remove("site")
        }
    }

    /// At every moment while it goes, readers find all of it or nothing.
    @Test func readersNeverSeeAPart() async throws {
        try await Setting.run(budget: Self.budget) { setting in
            try await install(setting, .whole)
            var seen: Set<Int> = []
            for number in 0..<300 {
                try await setting.store.put(
                    [UInt8](repeating: UInt8(number & 0xFF), count: 30_000 + number), for: Key("other \(number)"))
                // Not by the cache, which would use the package.
                let members = try setting.members().count
                let isThere = try setting.hasOwner()
                if isThere { #expect(members == 40) }
                seen.insert(isThere ? 1 : members > 0 ? 2 : 0)
            }
            #expect(seen.isSuperset(of: [0, 1]))
        }
    }

    /// Two packages that fit together, or do not: what an installation reports is there, and everything can be removed.
    @Test(arguments: DisplacementMode.allCases, [5, 6, 8, 12])
    func twoInASmallBudget(_ mode: DisplacementMode, _ megabytes: Int) async throws {
        try await Setting.run(budget: Budget(bytes: .megabytes(Int64(megabytes)))) { setting in
            var archives: [FilePath] = []
            for name in ["p", "q"] {
                let files = Dictionary(
                    uniqueKeysWithValues: (0..<100).map {
                        ("\(name)\($0)", "\(name)\($0)" + String(repeating: name, count: 20_000))
                    })
                archives.append(try setting.package(files, "\(name).zip") { $0.name = name })
            }
            var options = InstallOptions()
            options.mode = mode
            for (name, archive) in zip(["p", "q"], archives) {
                do {
                    try await setting.packages.install(archive, options)
                    let found = try await (0..<100).asyncCount {
                        try await setting.response("http://a.example/\(name)\($0)") != nil
                    }
                    #expect(found == 100)
                } catch let error as PackageError {
                    #expect(error.code == .exceedsBudget)
                    try await #expect(setting.packages.package(name) == nil)
                }
            }
            for package in try await setting.packages.packages() { try await setting.packages.remove(package.name) }
            try await #expect(setting.store.listed().isEmpty)
            try await setting.packages.install(archives[1], options)
        }
    }

    @Test func packagesThatDoNotFit() async throws {
        try await Setting.run(budget: Self.budget) { setting in
            try await press(setting, 20)
            let before = try setting.keys()
            let files = Dictionary(
                uniqueKeysWithValues: (0..<40).map { ("g\($0)", "\($0)" + String(repeating: "y", count: 200_000)) })
            let archive = try setting.package(files, "large.zip") { $0.name = "large" }
            for mode in DisplacementMode.allCases {
                var options = InstallOptions()
                options.mode = mode
                try await #expect(
                    packageCode { try await setting.packages.install(archive, options) } == .exceedsBudget)
            }
            #expect(try setting.keys() == before)
            // Alone each of them fits, pinned together they do not.
            try await install(setting, .pin)
            let second = Dictionary(
                uniqueKeysWithValues: (0..<30).map { ("h\($0)", "\($0)" + String(repeating: "z", count: 100_000)) })
            let other = try setting.package(second, "second.zip") { $0.name = "second" }
            var options = InstallOptions()
            options.mode = .pin
            try await #expect(packageCode { try await setting.packages.install(other, options) } == .exceedsBudget)
            try await #expect(found(setting) == 40)
            // Beside pinned ones there is less room than a budget says.
            options.mode = .members
            try await #expect(packageCode { try await setting.packages.install(other, options) } == .exceedsBudget)
            try await #expect(found(setting) == 40)
            #expect(try setting.members().allSatisfy { !$0.contains("/h") })
        }
    }
}
