import SystemPackage
import TestOrigin
import TestSupport

/// The certificate of the origins of tests, in files, as a gateway wants it.
enum TestCertificate {
    /// Writes both into a directory.
    static func write(to directory: FilePath) throws -> (certificate: String, key: String) {
        let paths = (directory.appending("certificate.pem"), directory.appending("key.pem"))
        try TestFiles.write(Array(certificate.utf8), to: paths.0)
        try TestFiles.write(Array(OriginCertificate.local.keyPEM.utf8), to: paths.1)
        return (paths.0.string, paths.1.string)
    }

    static let certificate = OriginCertificate.local.certificatePEM
}
