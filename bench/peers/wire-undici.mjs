import { openPerServer } from './per-server.mjs'
import { makeWire } from './wire.mjs'

export const open = (servers, marks) => openPerServer(servers, marks, makeWire('undici'))
