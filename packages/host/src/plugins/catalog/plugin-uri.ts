// Addresses of hosted plugins and of their bundles. An address counts only as it stands: one that would have to be rewritten first is refused. Pure.

const SCHEME = 'plugin:'
const PLUGIN_URI_CHARS_MAX = 1_024
const BUNDLE_URI_CHARS_MAX = 2_048

/**
 * The id in `plugin://ID`, which may have a path behind it.
 * @returns undefined for anything else: over 1,024 characters, not in its canonical form, or with a user, port, query, fragment or empty path segment.
 */
export function pluginIdOf(uri: string): string | undefined {
  const url = canonicalUrl(uri, PLUGIN_URI_CHARS_MAX)
  return url?.protocol === SCHEME && isPlain(url) && hasFullSegments(url) ? url.hostname : undefined
}

/** Is it an https address, or a resource below the plugin's own address? At most 2,048 characters. */
export function isBundleUri(bundleUri: string, pluginUri: string): boolean {
  const url = canonicalUrl(bundleUri, BUNDLE_URI_CHARS_MAX)
  if (url === undefined || url.username !== '' || url.password !== '' || url.hash !== '') return false
  if (url.protocol === 'https:') return true
  return url.protocol === SCHEME && isPlain(url) && hasFullSegments(url) && bundleUri.startsWith(`${pluginUri}/`)
}

/** Controls, white space, angle brackets and everything outside ASCII are written otherwise in the canonical form. */
function canonicalUrl(uri: string, charsMax: number): URL | undefined {
  if (uri.length > charsMax) return undefined
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  return url?.href === uri && url.hostname !== '' ? url : undefined
}

function isPlain({ username, password, port, search, hash, href }: URL): boolean {
  // A lone `?` or `#` leaves no trace in the parts.
  return [username, password, port, search, hash].every((part) => part === '') && !/[?#]/.test(href)
}

function hasFullSegments({ pathname }: URL): boolean {
  return (
    pathname === '' ||
    pathname
      .slice(1)
      .split('/')
      .every((segment) => segment !== '')
  )
}
