import HTTPTypes

extension HTTPResponse.Status {
    private static let known: [Int: HTTPResponse.Status] = Dictionary(
        uniqueKeysWithValues: [
            switchingProtocols, earlyHints, ok, created, accepted, nonAuthoritativeInformation, noContent, resetContent,
            partialContent, multipleChoices, movedPermanently, found, seeOther, notModified, temporaryRedirect,
            permanentRedirect, badRequest, unauthorized, forbidden, notFound, methodNotAllowed, notAcceptable,
            proxyAuthenticationRequired, requestTimeout, conflict, gone, lengthRequired, preconditionFailed,
            contentTooLarge, uriTooLong, unsupportedMediaType, rangeNotSatisfiable, expectationFailed,
            misdirectedRequest, unprocessableContent, tooEarly, upgradeRequired, preconditionRequired, tooManyRequests,
            requestHeaderFieldsTooLarge, unavailableForLegalReasons, internalServerError, notImplemented, badGateway,
            serviceUnavailable, gatewayTimeout, httpVersionNotSupported, networkAuthenticationRequired,
        ].map { ($0.code, $0) })

    /// A status with the reason phrase that specifications give it; without one where they know none.
    /// - Parameter code: 0 to 999.
    package static func standard(_ code: Int) -> HTTPResponse.Status { known[code] ?? HTTPResponse.Status(code: code) }
}
