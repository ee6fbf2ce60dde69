// The entry point of the process that reads a whole store: `node store_check.cjs <store>`.
import { runStoreCheck } from '../src/adapters/storage/store_check.ts';

runStoreCheck(process.argv[2] ?? '');
