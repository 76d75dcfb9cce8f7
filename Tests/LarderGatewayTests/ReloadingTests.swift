import Foundation
import HTTPTestSupport
import HTTPTypes
import LarderGateway
import LarderHTTP
import LarderNIOTransport
import NIOSSL
import SystemPackage
import TestSupport
import Testing

/// What a gateway reads again while it runs.
struct ReloadingTests {
    private let transport = ScriptedTransport { _ in .text("") }

    @Test func theAccessLogGoesOnInTheFileThatHasThePathNow() async throws {
        try await withDirectory { directory in
            let path = directory.appending("log")
            try await withGateway(transport: transport) {
                $0.accessLog = AccessLogConfiguration(path: path.string)
            } _: { setting in
                #expect(try await exchange(setting.port, get("/before")).status == 200)
                // The client may have its answer before it is counted and logged.
                try await waitWhile { await setting.gateway.readCounters().requests < 1 }
                await setting.gateway.tick()
                try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".1")
                #expect(try setting.gateway.reopenAccessLog())
                #expect(try await exchange(setting.port, get("/after")).status == 200)
                // The client may have its answer before it is counted and logged.
                try await waitWhile { await setting.gateway.readCounters().requests < 2 }
                await setting.gateway.tick()
                // A second time waits for the lines that were handed over.
                #expect(try setting.gateway.reopenAccessLog())
                let old = String(decoding: try TestFiles.read(FilePath(path.string + ".1")), as: UTF8.self)
                let new = String(decoding: try TestFiles.read(path), as: UTF8.self)
                #expect(old.contains("/before") && !old.contains("/after"))
                #expect(new.contains("/after") && !new.contains("/before"))
                // A directory that is gone leaves the file that is open.
                try FileManager.default.removeItem(atPath: directory.string)
                #expect(throws: GatewayError.self) { try setting.gateway.reopenAccessLog() }
                #expect(try await exchange(setting.port, get("/on")).status == 200)
            }
        }
    }

    @Test func aCertificateThatIsReadAgainIsForConnectionsToCome() async throws {
        try await withDirectory { directory in
            let files = try TestCertificate.write(to: directory)
            try await withGateway(transport: transport) {
                $0.tls = GatewayTLS(certificateFile: files.certificate, keyFile: files.key)
            } _: { setting in
                let port = setting.gateway.tlsAddress?.port ?? 0
                func trusts(_ certificate: String) async throws -> Bool {
                    var tls = TLSConfiguration.makeClientConfiguration()
                    tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(certificate.utf8)))
                    let client = NIOTransport(NIOTransport.Configuration(tls: tls))
                    let head = HTTPRequest(method: .get, scheme: "https", authority: "localhost:\(port)", path: "/")
                    let response = try? await client.send(TransportRequest(head: head))
                    await client.close()
                    return response != nil
                }
                #expect(try await trusts(TestCertificate.certificate))
                try TestFiles.write(Array(Self.certificate.utf8), to: FilePath(files.certificate))
                // The key is the old one still: the pair is refused, and the old pair stays.
                func fault() -> String? {
                    do {
                        try setting.gateway.reloadCertificate()
                        return nil
                    } catch { return error.message }
                }
                #expect(fault()?.hasSuffix("do not belong together") == true)
                try TestFiles.write(Array("text".utf8), to: FilePath(files.key))
                #expect(fault() == "'\(files.key)' is not a PEM file with a private key without a password")
                #expect(try await trusts(TestCertificate.certificate))
                try TestFiles.write(Array(Self.key.utf8), to: FilePath(files.key))
                #expect(try setting.gateway.reloadCertificate())
                #expect(try await trusts(Self.certificate))
                #expect(try await !trusts(TestCertificate.certificate))
            }
        }
    }

    /// Made as that of `TestCertificate`.
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBmzCCAUGgAwIBAgIURJagaxenTrtQepV6xthm0tvQ2KIwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjA5MTkxNloYDzIxMjYxMDI5
        MDkxOTE2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAARvTFsctR1h7Rpdy0DMwtIPS1HoEcqMYgmvH8eWL/O0oPTWb+NzIsHT
        lxmDhNlJLigdv9NzqVHTrVjkYyoz4OmLo28wbTAdBgNVHQ4EFgQUELF1iJe8royy
        s85pNNi+GBlz37cwHwYDVR0jBBgwFoAUELF1iJe8royys85pNNi+GBlz37cwDwYD
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
        zj0EAwIDSAAwRQIgetTn4GeB2WVMppYmxhCgHsanIjSjZH8SbbgBKfIB7XsCIQCb
        7OpcgP4Xfnguh2mUFxO15hgYAeuma7kkJiEOOrHWfw==
        -----END CERTIFICATE-----

        """

    private static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEnE1Ah4DGC2TYhBb
        +QrglWsIDERPDV4RCL1BsAtsBFShRANCAARvTFsctR1h7Rpdy0DMwtIPS1HoEcqM
        YgmvH8eWL/O0oPTWb+NzIsHTlxmDhNlJLigdv9NzqVHTrVjkYyoz4OmL
        -----END PRIVATE KEY-----

        """
}
