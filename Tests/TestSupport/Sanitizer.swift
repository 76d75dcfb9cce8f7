/// Whether the tests run with a sanitizer, which takes most of the address space, and much memory and time.
public enum Sanitizer {
    #if LARDER_VISIBLE_LOCKS
        /// True if they do.
        public static let isOn = true
    #else
        /// True if they do.
        public static let isOn = false
    #endif
}
