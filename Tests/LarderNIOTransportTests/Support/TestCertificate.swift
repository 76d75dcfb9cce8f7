import LarderNIOTransport
import NIOSSL

/// A certificate that signs itself, from 2020 to 2120. Good for nothing but these tests: its key is here.
enum TestCertificate: String {
    /// For `localhost` and `origin.test`, and for no address: NIOSSL takes a certificate for the address of the
    /// connection whatever name was asked for.
    case names = """
        -----BEGIN CERTIFICATE-----
        MIIBgTCCASigAwIBAgIBBDAKBggqhkjOPQQDAjAeMRwwGgYDVQQDDBNMYXJkZXIg
        dGVzdHMsIG5hbWVzMCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAe
        MRwwGgYDVQQDDBNMYXJkZXIgdGVzdHMsIG5hbWVzMFkwEwYHKoZIzj0CAQYIKoZI
        zj0DAQcDQgAEI17ITe1nlXZUGSWHY0wSbjTA2MdCUbhp+CASi6ye3FNE7w96B6R+
        zYI7CCUUPOUAbWfq8ier9U8dLcqA3SpOcKNVMFMwIQYDVR0RBBowGIIJbG9jYWxo
        b3N0ggtvcmlnaW4udGVzdDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBSWeLcW
        DMUf48J1whnAEuRgzHf6zzAKBggqhkjOPQQDAgNHADBEAiAs+xOin7Kokgw0udQE
        7fj0Lrt0p5mABCfn0y+vdylXVQIgcyV4YLEFY1k9utlrnxvrKW6oYt0XRi2D5i2F
        JuA76Ok=
        -----END CERTIFICATE-----
        """

    /// For 127.0.0.1.
    case address = """
        -----BEGIN CERTIFICATE-----
        MIIBdDCCARqgAwIBAgIBBTAKBggqhkjOPQQDAjAgMR4wHAYDVQQDDBVMYXJkZXIg
        dGVzdHMsIGFkZHJlc3MwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBa
        MCAxHjAcBgNVBAMMFUxhcmRlciB0ZXN0cywgYWRkcmVzczBZMBMGByqGSM49AgEG
        CCqGSM49AwEHA0IABCNeyE3tZ5V2VBklh2NMEm40wNjHQlG4afggEousntxTRO8P
        egekfs2COwglFDzlAG1n6vInq/VPHS3KgN0qTnCjQzBBMA8GA1UdEQQIMAaHBH8A
        AAEwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUlni3FgzFH+PCdcIZwBLkYMx3
        +s8wCgYIKoZIzj0EAwIDSAAwRQIga0bDbh7viGEP6Tr4ocDTqoAtbM0harTAB5qu
        mbspGVICIQC7ttPRkFc+jyNPTJbrCCg4t7POsVU9XgZWBdD/I84klQ==
        -----END CERTIFICATE-----
        """

    private static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTKKn3U3O+4ROSmWj
        nYDL2OA6AN9Cfs4pISwzURqR7NChRANCAAQjXshN7WeVdlQZJYdjTBJuNMDYx0JR
        uGn4IBKLrJ7cU0TvD3oHpH7NgjsIJRQ85QBtZ+ryJ6v1Tx0tyoDdKk5w
        -----END PRIVATE KEY-----
        """

    func server(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(rawValue.utf8)).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(Self.key.utf8), format: .pem)))
        change(&configuration)
        return try NIOSSLContext(configuration: configuration)
    }

    /// Trusts these certificates and no other.
    static func client() throws -> TLSConfiguration {
        var configuration = NIOTransport.Configuration.defaultTLS
        configuration.trustRoots = .certificates(
            try [Self.names, .address].flatMap { try NIOSSLCertificate.fromPEMBytes(Array($0.rawValue.utf8)) })
        return configuration
    }
}
