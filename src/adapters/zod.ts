// The package zod, for the shapes of input from outside. Loaded only where input is checked.
export * as z from 'zod';
