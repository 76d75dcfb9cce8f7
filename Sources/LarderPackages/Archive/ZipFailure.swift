import CZip
import SystemPackage

/// Errors of libzip as errors of packages: zip_error_code_zip(3), zip_error_code_system(3).
enum ZipFailure {
    static func error(
        _ error: UnsafePointer<zip_error_t>, _ archive: FilePath, _ member: String? = nil
    ) -> PackageError {
        make(zip_error_code_zip(error), system: zip_error_code_system(error), archive, member)
    }

    static func make(_ number: Int32, system: Int32, _ archive: FilePath, _ member: String?) -> PackageError {
        var error = zip_error_t()
        zip_error_init(&error)
        zip_error_set(&error, number, system)
        let text = String(cString: zip_error_strerror(&error))
        let type = zip_error_system_type(&error)
        zip_error_fini(&error)
        let cause = type == ZIP_ET_SYS && system != 0 ? Errno(rawValue: system) : nil
        let code = code(number, isMember: member != nil)
        return PackageError(
            code, text, archive: archive, member: member, cause: code == .io && number != ZIP_ER_MEMORY ? cause : nil)
    }

    private static func code(_ number: Int32, isMember: Bool) -> PackageError.Code {
        switch number {
        case ZIP_ER_NOPASSWD: .passwordRequired
        case ZIP_ER_WRONGPASSWD: .wrongPassword
        case ZIP_ER_COMPNOTSUPP, ZIP_ER_ENCRNOTSUPP, ZIP_ER_OPNOTSUPP, ZIP_ER_MULTIDISK: .unsupported
        case ZIP_ER_EXISTS: .duplicate
        case ZIP_ER_OPEN, ZIP_ER_TMPOPEN, ZIP_ER_WRITE, ZIP_ER_RENAME, ZIP_ER_CLOSE, ZIP_ER_REMOVE, ZIP_ER_MEMORY: .io
        // The file is open and was read once: what leads to places that are not there is the archive's fault.
        case ZIP_ER_READ, ZIP_ER_SEEK, ZIP_ER_TELL, ZIP_ER_NOENT: isMember ? .damagedMember : .notAnArchive
        default: isMember ? .damagedMember : .notAnArchive
        }
    }
}
