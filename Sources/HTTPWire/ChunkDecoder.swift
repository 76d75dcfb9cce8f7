/// The chunked transfer coding (RFC 9112 section 7.1), byte for byte as its grammar says.
struct ChunkDecoder: Sendable {
    private enum State {
        case firstDigit, digits, blank, sizeLineFeed
        /// In the extensions of a chunk.
        case nameStart, name, nameEnd, valueStart, value, quoted, escaped, valueEnd
        case data
        case dataReturn, dataLineFeed
        case trailerStart, trailerName, trailerValue, trailerLineFeed
        case endLineFeed, end
    }

    /// Digits of a size, leading zeros included: 2^60 bytes are enough for any message, and fit in 64 bits.
    private static let sizeDigits = 15
    /// Bytes of chunk extensions beyond those of data: "A recipient MUST ignore unrecognized chunk extensions", and "A
    /// server ought to limit the total length of chunk extensions received" (section 7.1.1).
    private static let extensionBytes = 16 << 10
    /// Bytes of trailer fields, which are checked and dropped.
    private static let trailerBytes = 16 << 10

    private var state = State.firstDigit
    private var size: Int64 = 0
    private var digits = 0
    private var extensions = 0
    private var trailers = 0

    var isAtEnd: Bool { state == .end }

    mutating func next(_ bytes: UnsafeRawBufferPointer, at position: inout Int) throws(WireError) -> BodyDecoder.Event {
        while state != .end {
            guard position < bytes.count else { return .needsMore }
            if state == .data {
                let count = Int(min(Int64(bytes.count - position), size))
                size -= Int64(count)
                if size == 0 { state = .dataReturn }
                defer { position += count }
                return .payload(position..<position + count)
            }
            let byte = bytes[position]
            position += 1
            switch state {
            case .firstDigit, .digits, .blank, .sizeLineFeed: try takeSize(byte)
            case .nameStart, .name, .nameEnd, .valueStart, .value, .quoted, .escaped, .valueEnd:
                try takeExtension(byte)
                try countExtension()
            case .data, .end: break
            case .dataReturn:
                guard byte == Byte.carriageReturn else { throw .invalidChunkEnd }
                state = .dataLineFeed
            case .dataLineFeed:
                guard byte == Byte.lineFeed else { throw .invalidChunkEnd }
                state = .firstDigit
            case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .endLineFeed: try takeTrailer(byte)
            }
        }
        return .end
    }

    /// `1*HEXDIG [ chunk-ext ] CRLF`
    private mutating func takeSize(_ byte: UInt8) throws(WireError) {
        switch state {
        case .firstDigit, .digits:
            if let digit = byte.hexadecimalValue {
                if state == .firstDigit { (size, digits) = (0, 0) }
                digits += 1
                guard digits <= Self.sizeDigits else { throw .invalidChunkSize }
                size = size << 4 | Int64(digit)
                state = .digits
                return
            }
            guard state == .digits else { throw .invalidChunkSize }
            fallthrough
        case .blank:
            if byte == Byte.carriageReturn, state == .digits {
                state = .sizeLineFeed
            } else if byte == Byte.semicolon {
                state = .nameStart
            } else if byte.isWhitespace {
                state = .blank
            } else {
                throw .invalidChunkSize
            }
            try countExtension()
        default:
            guard byte == Byte.lineFeed else { throw .bareCarriageReturn }
            state = size == 0 ? .trailerStart : .data
            extensions = max(0, extensions - Int(min(size, Int64(Self.extensionBytes))))
        }
    }

    /// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`, a value being a token or a quoted string.
    ///
    /// Only what has this form is passed over (section 7.1.1): a server that reads a quote where this one does not, or
    /// the other way round, would see the chunk end elsewhere (section 11.2).
    private mutating func takeExtension(_ byte: UInt8) throws(WireError) {
        guard !byte.isControl || byte == Byte.carriageReturn else {
            throw byte == Byte.lineFeed ? .bareLineFeed : .controlCharacter
        }
        switch state {
        case .nameStart where byte.isTokenCharacter, .name where byte.isTokenCharacter: state = .name
        case .nameStart where byte.isWhitespace, .valueStart where byte.isWhitespace: break
        case .name where byte.isWhitespace, .nameEnd where byte.isWhitespace: state = .nameEnd
        case .name where byte == Byte.equals, .nameEnd where byte == Byte.equals: state = .valueStart
        case .valueStart where byte == Byte.quote: state = .quoted
        case .valueStart where byte.isTokenCharacter, .value where byte.isTokenCharacter: state = .value
        case .quoted where byte == Byte.quote: state = .valueEnd
        case .quoted where byte == Byte.backslash: state = .escaped
        case .quoted where byte != Byte.carriageReturn, .escaped where byte != Byte.carriageReturn: state = .quoted
        case .value where byte.isWhitespace, .valueEnd where byte.isWhitespace: state = .blank
        case .name, .nameEnd, .value, .valueEnd:
            if byte == Byte.semicolon {
                state = .nameStart
            } else if byte == Byte.carriageReturn, state != .nameEnd {
                state = .sizeLineFeed
            } else {
                throw .invalidChunkExtension
            }
        default: throw .invalidChunkExtension
        }
    }

    private mutating func countExtension() throws(WireError) {
        if state != .sizeLineFeed { extensions += 1 }
        if extensions > Self.extensionBytes { throw .chunkExtensionsTooLong }
    }

    /// `*( field-line CRLF ) CRLF`
    private mutating func takeTrailer(_ byte: UInt8) throws(WireError) {
        trailers += 1
        if trailers > Self.trailerBytes { throw .trailersTooLarge }
        switch state {
        case .trailerStart:
            if byte == Byte.carriageReturn {
                state = .endLineFeed
            } else {
                guard byte.isTokenCharacter else { throw .invalidFieldName }
                state = .trailerName
            }
        case .trailerName:
            if byte == Byte.colon {
                state = .trailerValue
            } else if !byte.isTokenCharacter {
                throw .invalidFieldName
            }
        case .trailerValue:
            if byte == Byte.carriageReturn {
                state = .trailerLineFeed
            } else if byte.isControl {
                throw byte == Byte.lineFeed ? .bareLineFeed : .controlCharacter
            }
        default:
            guard byte == Byte.lineFeed else { throw .bareCarriageReturn }
            state = state == .endLineFeed ? .end : .trailerStart
        }
    }
}
