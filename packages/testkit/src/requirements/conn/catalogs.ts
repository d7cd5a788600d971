import { AS_IS, type Requirement } from '../requirement.ts'

/** What is listed, named, shown and cached. */
export const connCatalogs: readonly Requirement[] = [
  // Listing
  {
    id: 'conn.049',
    text: 'A listing starts every server before the first of them has answered',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.050',
    text: 'A listing waits for a pending server without a cached catalog',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.051',
    text: 'A hosted server that is pending lists its cached tools at once, and an empty cached catalog counts',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.052',
    text: 'A hosted server whose start failed still lists its cached tools and what is known of the server',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.053',
    text: "Namespaces begin with mcp__ when prefixes are on, and with the server's name when they are off",
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.054',
    text: 'Whether calls may run in parallel, and the origin of the server, stand on every listed tool',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.055',
    text: 'The approval mode of a tool beats that of its server, and the environment stands beside it',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.056',
    text: 'A cursor that comes again ends the listing after exactly two requests',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.057',
    text: '101 pages, 2,049 items, a cursor of 65,537 bytes and slow pages each fail a listing in words of their own; a hosted server may list 8,192 items',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.058',
    text: 'What is known of a pending hosted server comes from the cache without waiting',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.059',
    text: 'A server that only has the name of the apps server has no access to the cache of the hosted one',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 36: hosted is a trait, not a name' },
  },
  {
    id: 'conn.060',
    text: 'A hosted server with a bearer token from a variable shares no cache',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 36: hosted is a trait, not a name' },
  },
  // Names, filters, visibility
  {
    id: 'conn.061',
    text: 'Short names stay as they are',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.062',
    text: 'The first of two exact duplicates is kept',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.063',
    text: 'A name of exactly the limit stays, one character more is cut to the limit with a hash',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 3: 64 characters in all, configurable to 128' },
  },
  {
    id: 'conn.064',
    text: 'Two names that are both too long end at the limit, in the same namespace and with characters that are allowed',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 3: 64 characters in all, configurable to 128' },
  },
  {
    id: 'conn.065',
    text: 'Characters that are not allowed are replaced, and the raw names are what is routed',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 3: hyphens stay' },
  },
  {
    id: 'conn.066',
    text: 'Four servers whose namespaces collide after cleaning get four namespaces',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.067',
    text: 'Two tools whose names collide after cleaning get two names',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.068',
    text: 'Only servers that are named as unprefixed go without the prefix, matched by their raw name',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.069',
    text: 'With prefixes off for all nobody has one',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.070',
    text: 'An allow list allows only what it names, a deny list wins over it, and each server has its own',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.071',
    text: 'A tool is hidden from models exactly when its visibility is a list without "model"',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.072',
    text: 'Connector fields of an ordinary server are removed, those of a hosted one are kept',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.073',
    text: 'File parameters are shown to models as local paths',
    milestone: 2,
    origin: { kind: 'dropped', because: 'decision 42: file transfer is not built' },
  },
  // Caches
  {
    id: 'conn.074',
    text: 'An empty catalog is not a cached tool list, annotations are not cached, a replaced environment misses, an older ticket loses, and what is too old is stale and then dropped',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 37: stale after 24 hours, dropped after 7 days' },
  },
  {
    id: 'conn.075',
    text: 'A server of another environment that takes variables from there is not cached',
    milestone: 2,
    origin: { kind: 'reworded', because: 'variables of another environment are not visible here' },
  },
  {
    id: 'conn.076',
    text: 'A server whose headers come from a helper is not cached',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.077',
    text: 'The catalog of a signed-in server is cached under its credential record, and not at all while that record cannot be read',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 37: cached under the credential record' },
  },
  {
    id: 'conn.078',
    text: 'Another value of a referenced variable is another cache key',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.079',
    text: 'The entry that was not used for longest goes when the cache is full',
    milestone: 2,
    origin: { kind: 'replaced', because: 'decision 37: 256 entries in memory, 1,024 on disk' },
  },
  {
    id: 'conn.080',
    text: 'A server that asks not to be cached has its entry disabled for good',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.081',
    text: 'Of two hosted connections the newer listing wins for discovery on both, and bindings keep what their own connection listed',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.082',
    text: 'A ready hosted connection shows the shared catalog for discovery and its own in bindings; filtered and cached-only tools cannot be prepared',
    milestone: 2,
    origin: AS_IS,
  },
  {
    id: 'conn.083',
    text: 'A cache file with the wrong schema, with too many bytes or that is no JSON is ignored, files are replaced atomically, and an older listing never overwrites a newer one',
    milestone: 2,
    origin: { kind: 'reworded', because: 'decision 37: the limits of the disk cache' },
  },
]
