/// What a running server reads again.
extension Server {
    /// Opens the file of the access log again, after a program that rotates logs has renamed it. Lines handed over
    /// before go to the old file. Waits for the disk.
    /// - Returns: false without an access log, or with one on the standard output.
    /// - Throws: `io`; the old file is written on then.
    package func reopenAccessLog() throws(GatewayError) -> Bool { try core.accessLog?.reopen() ?? false }

    /// Reads the files of the certificate and the key again: connections accepted from now on get them, those that are
    /// open keep theirs. Waits for the disk.
    /// - Returns: false without TLS.
    /// - Throws: `tls`; the old certificate is used on then.
    package func reloadCertificate() throws(GatewayError) -> Bool {
        try tls?.reload()
        return tls != nil
    }
}
