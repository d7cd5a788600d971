// The headers that repeat the body, and the tools that declare them: pure.
import { verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { addressKind, isAllowed } from '../src/address.ts'
import { headerParameters, headerValue, writeOwn } from '../src/mirror.ts'
import type { JsonObject, Tool } from '../src/protocol.ts'

const tool = (properties: JsonObject, rest: JsonObject = {}): Tool => ({
  name: 't',
  inputSchema: { type: 'object', properties, ...rest },
})
const header = (name: unknown, type: unknown = 'string'): JsonObject => ({ type, 'x-mcp-header': name })

verifies('security.038', () => {
  const invalid: [string, Tool][] = [
    ['an empty name', tool({ a: header('') })],
    ['a space', tool({ a: header('a b') })],
    ['a line break', tool({ a: header('a\r\nX: y') })],
    ['letters beyond ASCII', tool({ a: header('Régíon') })],
    ['a colon', tool({ a: header('a:b') })],
    ['no text', tool({ a: header(1) })],
    ['case alone sets them apart', tool({ a: header('Region'), b: header('region') })],
    ['a number', tool({ a: header('A', 'number') })],
    ['an object', tool({ a: header('A', 'object') })],
    ['several types', tool({ a: header('A', ['string', 'null']) })],
    ['no type', tool({ a: { 'x-mcp-header': 'A' } })],
    ['under items', tool({ a: { type: 'array', items: header('A') } })],
    ['under a list of items', tool({ a: { type: 'array', items: [header('A')] } })],
    ['under anyOf', tool({ a: { anyOf: [header('A')] } })],
    ['under properties of anyOf', tool({}, { anyOf: [{ properties: { a: header('A') } }] })],
    ['under $defs', tool({ a: { $ref: '#/$defs/a' } }, { $defs: { a: header('A') } })],
    ['under patternProperties', tool({}, { patternProperties: { '^a': header('A') } })],
    ['under additionalProperties', tool({}, { additionalProperties: header('A') })],
    ['under if', tool({}, { if: { properties: { a: header('A') } } })],
    ['on the schema itself', tool({}, { 'x-mcp-header': 'A' })],
  ]
  for (const [what, one] of invalid) expect(headerParameters(one), what).toHaveProperty('invalid')
  const found = headerParameters(
    tool({
      a: header('Authorization'),
      b: { type: 'object', properties: { properties: header('Host', 'boolean') } },
      c: { type: 'string' },
    }),
  )
  expect(found).toEqual(
    expect.arrayContaining([
      { header: 'mcp-param-authorization', path: ['a'] },
      { header: 'mcp-param-host', path: ['b', 'properties'] },
    ]),
  )
  // Only a keyword counts: not a property of that name, an example, a default or a value.
  expect(
    headerParameters(
      tool({
        'x-mcp-header': { type: 'string' },
        d: { type: 'object', default: header('A'), examples: [header('A')], enum: [header('A')] },
      }),
    ),
  ).toEqual([])
  expect(headerParameters({ name: 't', inputSchema: undefined as unknown as JsonObject })).toEqual([])
})

test('a hostile schema is no trouble', () => {
  let deep: JsonObject = header('A')
  for (let level = 0; level < 100_000; level++) deep = { type: 'object', properties: { a: deep } }
  expect(headerParameters({ name: 't', inputSchema: deep })).toHaveProperty('invalid')
  const wide = Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`p${n}`, { type: 'string' }]))
  expect(headerParameters(tool(wide))).toEqual({ invalid: 'inputSchema has more than 50000 parts' })
  expect(
    headerParameters(tool(Object.fromEntries(Array.from({ length: 129 }, (_, n) => [`p${n}`, header(`P${n}`)])))),
  ).toHaveProperty('invalid')
})

verifies('wire.191', () => {
  const rows: [string, string][] = [
    ['us-west1', 'us-west1'],
    ['a b', 'a b'],
    ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
    [' padded ', '=?base64?IHBhZGRlZCA=?='],
    ['line1\nline2', '=?base64?bGluZTEKbGluZTI=?='],
    ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
    ['=?BASE64?literal?=', '=?BASE64?literal?='],
    ['', '=?base64??='],
    ['\r\nx: y', '=?base64?DQp4OiB5?='],
    ['a\0b', '=?base64?YQBi?='],
    ['tab\there', '=?base64?dGFiCWhlcmU=?='],
  ]
  for (const [value, expected] of rows) expect(headerValue(value), JSON.stringify(value)).toBe(expected)
})

test('headers of one call take the place of ours, and never of what carries the message', () => {
  const headers = ['accept', 'application/json', 'mcp-param-a', '1']
  writeOwn(headers, {
    'MCP-Param-A': '2',
    'x-b': '3',
    accept: 'text/html',
    Host: 'evil',
    authorization: 'Bearer x',
    'mcp-method': 'x',
    'proxy-authorization': 'y',
  })
  expect(headers).toEqual(['accept', 'application/json', 'mcp-param-a', '2', 'x-b', '3'])
})

verifies('security.039', () => {
  const kinds: Record<string, readonly string[]> = {
    public: [
      '8.8.8.8',
      '1.1.1.1',
      '172.15.255.255',
      '172.32.0.1',
      '192.167.255.255',
      '100.63.255.255',
      '100.128.0.1',
      '223.255.255.255',
      '2606:4700::1111',
      '2a00:1450:4001:800::200e',
      '::ffff:8.8.8.8',
      '64:ff9b::808:808',
      '::ffff:808:808',
    ],
    loopback: [
      '127.0.0.1',
      '127.255.255.255',
      '::1',
      '0:0:0:0:0:0:0:1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '64:ff9b::7f00:1',
    ],
    other: [
      ...[
        '0.0.0.0',
        '0.1.2.3',
        '10.0.0.1',
        '100.64.0.1',
        '100.127.255.255',
        '169.254.169.254',
        '172.16.0.1',
        '172.31.255.255',
        '192.0.0.1',
        '192.0.2.1',
        '192.88.99.1',
        '192.168.1.1',
        '198.18.0.1',
        '198.19.255.255',
        '198.51.100.1',
        '203.0.113.1',
        '224.0.0.1',
        '240.0.0.1',
        '255.255.255.255',
      ],
      ...[
        '::',
        '::7f00:1',
        '::127.0.0.1',
        '::ffff:169.254.169.254',
        '::ffff:a9fe:a9fe',
        '64:ff9b::a9fe:a9fe',
        '64:ff9b:1::1',
        '100::1',
        'fc00::1',
        'fd12:3456::1',
        'fe80::1',
        'fe80::1%eth0',
        'fec0::1',
        'ff02::1',
        '2001::1',
        '2001:0:4136:e378:8000:63bf:3fff:fdd2',
        '2001:db8::1',
        '2002:7f00:1::1',
        '2002:808:808::1',
        '3fff::1',
        '5f00::1',
        '4000::1',
      ],
    ],
    'not-an-address': [
      '',
      'localhost',
      '1.2.3',
      '1.2.3.4.5',
      '01.2.3.4',
      '256.1.1.1',
      '1.2.3.4 ',
      '0x7f.1',
      '2130706433',
      ':::',
      '1::2::3',
      '12345::',
      'g::1',
      '1:2:3:4:5:6:7:8:9',
      '::1.2.3',
      '1:2:3:4:5:6:7',
      '[::1]',
    ],
  }
  for (const [kind, addresses] of Object.entries(kinds))
    for (const address of addresses) expect(addressKind(address), address).toBe(kind)
  expect(
    ['8.8.8.8', '127.0.0.1', '10.0.0.1', 'localhost'].map((address) => [
      isAllowed(address, 'public'),
      isAllowed(address, 'public-or-loopback'),
      isAllowed(address, 'any'),
    ]),
  ).toEqual([
    [true, true, true],
    [false, true, true],
    [false, false, true],
    [false, false, true],
  ])
})
