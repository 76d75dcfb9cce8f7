import Crypto
import Foundation
import LarderPackages
import SystemPackage
import TestSupport
import Testing

@Suite struct SignatureTests {
    @Test func signedPackages() async throws {
        try await Setting.run { setting in
            let (key, other) = (PackageSigningKey(), PackageSigningKey())
            let signed = try setting.package(["a": "1"], "signed.zip") { $0.signingKey = key }
            let plain = try setting.package(["a": "1"], "plain.zip")
            var options = InstallOptions()
            options.trustedKeys = [other.publicKey]
            try await #expect(packageCode { try await setting.packages.install(signed, options) } == .untrusted)
            try await #expect(packageCode { try await setting.packages.install(plain, options) } == .untrusted)
            try await #expect(setting.store.listed().isEmpty)
            options.trustedKeys = [other.publicKey, key.publicKey]
            let package = try await setting.packages.install(signed, options).package
            #expect(package.isTrusted && package.signer == key.publicKey.description)
            // Its name is not free for others.
            options.trustedKeys = []
            let second = try setting.package(["a": "2"], "second.zip", version: "2")
            try await #expect(packageCode { try await setting.packages.install(second, options) } == .untrusted)
            try await #expect(setting.offline("http://a.example/a") == "1")
            options.acceptsOtherSigner = true
            try await #expect(setting.packages.install(second, options).replaced == 1)
        }
    }

    /// A list that was changed after it was signed, whether or not its key is trusted.
    @Test func aForgedList() async throws {
        try await Setting.run { setting in
            let key = PackageSigningKey()
            let archive = try setting.package(["a": "1"]) { $0.signingKey = key }
            // The signature of another list.
            let other = try setting.package(["a": "2"], "other.zip") { $0.signingKey = PackageSigningKey() }
            let list = try Self.member("larder.members", other)
            let signature = try Self.member("larder.signature", archive)
            let forged = RawZip([
                .init("a.example/a", Array("2".utf8)), .init("larder.members", list),
                .init("larder.signature", signature),
            ])
            let path = try setting.archive(forged, "forged.zip")
            try await #expect(packageCode { try await setting.packages.install(path) } == .untrusted)
            let broken = RawZip([
                .init("a.example/a", Array("2".utf8)), .init("larder.members", list),
                .init("larder.signature", Array("{}".utf8)),
            ])
            try await #expect(
                packageCode { try await setting.packages.install(setting.archive(broken, "b.zip")) } == .untrusted)
            try await #expect(setting.store.listed().isEmpty)
        }
    }

    private static func member(_ name: String, _ archive: FilePath) throws -> [UInt8] {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c",
            "import sys,zipfile;sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))",
            archive.string, name,
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Array(data)
    }

    /// RFC 8410 section 10.3, and a key made here.
    @Test func keysAsFiles() throws {
        let privatePEM = """
            -----BEGIN PRIVATE KEY-----
            MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
            -----END PRIVATE KEY-----
            """
        let publicPEM = """
            -----BEGIN PUBLIC KEY-----
            MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
            -----END PUBLIC KEY-----

            """
        let key = try #require(PackageSigningKey(privatePEM))
        #expect(PackageKey(publicPEM) == key.publicKey)
        #expect(PackageKey(key.publicKey.description) == key.publicKey)
        for text in ["", "x", privatePEM, publicPEM.replacing("MCow", with: "MCox"), "AAAA"] {
            #expect(PackageKey(text) == nil)
        }
        #expect(PackageSigningKey(publicPEM) == nil && PackageKey(bytes: [1]) == nil)
    }
}
