/* Multi-phase initialisation of an object that is no module and has no __dict__. */
#include <Python.h>

static PyObject *
create(PyObject *spec, PyModuleDef *definition)
{
    return PyComplex_FromDoubles(3.0, 0.0);
}

static PyModuleDef_Slot slots[] = {{Py_mod_create, create}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "odd", .m_size = 0, .m_slots = slots};

PyMODINIT_FUNC
PyInit_odd(void)
{
    return PyModuleDef_Init(&definition);
}
