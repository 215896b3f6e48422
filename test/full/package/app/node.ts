import { fromEnv, serve } from 'portico/node';
import { appOn } from './app.ts';

const { app, gateway } = appOn(fromEnv(process.env));

export default app;

console.log('the app says something itself');
await serve(app, gateway);
