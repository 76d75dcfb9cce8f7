/// A certificate for localhost that nobody should trust, and its key: for tests on 127.0.0.1 only.
///
/// Made with `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj /CN=localhost`.
enum Certificate {
    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBqDCCAU6gAwIBAgIUCS+RnQG5SmsyioxdLZ4mXNuWDj8wCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE0NTgyOVoYDzIxMjYxMDI4
        MTQ1ODI5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAATT931YoFasofSy4qnJ5XFAl7qYcq007qVLfkmYu+mkWJDFsM5siNSd
        rwvqqUzdzLzMGDGgd2xZfgXqi89LzcZMo3wwejAdBgNVHQ4EFgQUlY+VfxgHVrdb
        gDCJhiotLlbrlt8wHwYDVR0jBBgwFoAUlY+VfxgHVrdbgDCJhiotLlbrlt8wDwYD
        VR0TAQH/BAUwAwEB/zAnBgNVHREEIDAegglsb2NhbGhvc3SCC2V4YW1wbGUub3Jn
        hwR/AAABMAoGCCqGSM49BAMCA0gAMEUCIBd5Ckccr6SsZIS1B8/I9YmIlG0SrCRW
        rRl/06pM7YtmAiEAg0Qutf0zOFT15hSoBvO+fEIl5vQ3TfBSvpmUNDBwt2A=
        -----END CERTIFICATE-----

        """

    static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0AsthH+MemWpGsBn
        P73mEZr1a0zl0K9e4U3HX8G61GGhRANCAATT931YoFasofSy4qnJ5XFAl7qYcq00
        7qVLfkmYu+mkWJDFsM5siNSdrwvqqUzdzLzMGDGgd2xZfgXqi89LzcZM
        -----END PRIVATE KEY-----

        """
}
