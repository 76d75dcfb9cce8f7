import LarderPackages
import TestSupport
import Testing

@testable import LarderHTTP

/// A package that comes when the cache knows that there is none.
struct LaterPackageTests {
    /// What nothing is stored of under its URL does not go to the origin without a look for members.
    @Test func itIsLookedForBeforeTheOriginIsAsked() async throws {
        try await Setting.run { setting in
            let scope = SearchScope(uri: "http://a.example/a")
            // A miss looks for packages.
            try await #expect(setting.offline(scope.path) == nil)
            let lookup = setting.cache.loader.lookup
            #expect(!lookup.mayFindElsewhere(scope))
            try await setting.packages.install(setting.package(["a": "1"]))
            #expect(lookup.mayFindElsewhere(scope))
            try await #expect(setting.offline(scope.path) == "1")
            #expect(lookup.mayFindElsewhere(scope))
            for package in try await setting.packages.packages() { try await setting.packages.remove(package.name) }
            #expect(!lookup.mayFindElsewhere(scope))
        }
    }
}
