// The server half of the wire: one MCP endpoint over HTTP or stdio, both eras.
export const MODERN_VERSION = '2026-07-28'
