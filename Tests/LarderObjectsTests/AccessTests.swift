import HTTPTypes
import Larder
import LarderObjects
import SeededData
import TestSupport
import Testing

/// Who may read and write what.
struct AccessTests {
    private static let users = [
        ObjectAccess.User("ci", secret: Digest.of(Array("s3cret:x".utf8))),
        ObjectAccess.User("laptop", secret: Digest.of(Array("read".utf8)), right: .read),
        ObjectAccess.User("team", secret: Digest.of(Array("team".utf8)), prefixes: ["/team-a/"]),
    ]

    private static let ci: HTTPFields = [.authorization: "Basic Y2k6czNjcmV0Ong="]

    @Test func eachHasTheRightsGiven() async throws {
        try await Setting.run({ $0.access = ObjectAccess(users: Self.users, anonymous: .none) }) { setting in
            let anonymous = try await setting.get("/a")
            #expect(anonymous.status == 401 && anonymous.fields[.wwwAuthenticate]?.hasPrefix("Basic ") == true)
            try await #expect(setting.put("/a", [1], Self.ci) == 201)
            for token in ["Bearer s3cret:x", "bearer read", "Basic bGFwdG9wOnJlYWQ="] {
                try await #expect(setting.get("/a", [.authorization: token]).bytes == [1], "\(token)")
            }
            try await #expect(setting.put("/a", [2], [.authorization: "Bearer read"]) == 403)
            for wrong in ["Basic Y2k6cmVhZA==", "Bearer x", "Basic ???", "Digest a", "Basic", "Basic Y2k="] {
                try await #expect(setting.get("/a", [.authorization: wrong]).status == 401, "\(wrong)")
                try await #expect(setting.put("/a", [2], [.authorization: wrong]) == 401, "\(wrong)")
            }
            // Who wrote it is kept.
            let attributes = try await setting.store.perform { try $0.attributes(of: "/a") }
            #expect(attributes?.tags == ["user:ci"])
        }
    }

    @Test func aPrefixIsComparedByBytes() async throws {
        let user = ObjectAccess.User("a", secret: Digest.of(Array("s".utf8)), prefixes: ["/Kernel"])
        try await Setting.run({ $0.access = ObjectAccess(users: [user], anonymous: .none) }) { setting in
            let fields: HTTPFields = [.authorization: "Bearer s"]
            try await #expect(setting.put("/Kernel/x", [1], fields) == 201)
            // KELVIN SIGN.
            try await #expect(setting.put("/%E2%84%AAernel/x", [1], fields) == 403)
        }
    }

    @Test func aPrefixEndsAtASlash() async throws {
        try await Setting.run({ $0.access = ObjectAccess(users: Self.users, anonymous: .read) }) { setting in
            let team: HTTPFields = [.authorization: "Bearer team"]
            try await #expect(setting.put("/team-a/x", [1], team) == 201)
            try await #expect(setting.put("/team-a/%2e%2e/x", [1], team) == 400)
            for path in ["/team-ab/x", "/x", "/team-a", "/v1/cache/1"] {
                #expect(try await setting.put(path, [1], team) == (path == "/team-a" ? 201 : 403), "\(path)")
                try await #expect(setting.put(path, [1]) == 401)
            }
            try await #expect(setting.get("/team-a/x").bytes == [1])
        }
    }

    /// A client that sends credentials without being asked is welcome where all are.
    @Test func credentialsWithoutUsers() async throws {
        try await Setting.run { setting in
            try await #expect(setting.put("/a", [1], Self.ci) == 201)
        }
        try await Setting.run({ $0.access.anonymous = .read }) { setting in
            try await #expect(setting.put("/a", [1]) == 403)
            try await #expect(setting.send("MKCOL", "/a/").status == 403)
            try await #expect(setting.send("DELETE", "/a").status == 403)
            try await #expect(setting.get("/a").status == 404)
        }
    }
}
